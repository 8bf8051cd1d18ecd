"""What was measured between places becomes a cluster that loads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dlion_sim.calibration import network_block
from dlion_sim.errors import InputError
from dlion_sim.scenario import Cluster, Schedule
from tests.scenario.test_matrix import iperf3

BANDWIDTHS = "Mbps,east,west,north\neast,,40,12.5\nwest,25,,8\nnorth,10,8,\n"
RTTS = "ms,west,north\neast,80,120\nwest,,60\n"


def test_matrices_become_clouds_and_what_is_between_them(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text(BANDWIDTHS)
    (tmp_path / "r.csv").write_text(RTTS)
    block = network_block(tmp_path / "b.csv", tmp_path / "r.csv")["cluster"]
    assert block["clouds"][0] == {"name": "east", "workers": [{"count": 1}]}  # nobody has measured machines
    cluster = Cluster.model_validate(block)
    assert sorted(cloud.name for cloud in cluster.clouds) == ["east", "north", "west"]
    assert cluster.wan_path("east", "north") == (Schedule.constant(12.5e6), 0.12)
    assert cluster.wan_path("north", "east") == (Schedule.constant(10e6), 0.12)


def test_iperf3s_results_tell_both(tmp_path: Path) -> None:
    for name, rate in {"a-to-b": 40e6, "b-to-a": 2.5e6}.items():
        result = iperf3(rate * 1448 / 1514)
        result["end"]["streams"] = [{"sender": {"min_rtt": 80_000}}]
        (tmp_path / f"{name}.json").write_text(json.dumps(result))
    cluster = Cluster.model_validate(network_block(tmp_path)["cluster"])
    bandwidth, rtt = cluster.wan_path("b", "a")
    assert (bandwidth and bandwidth.value_at(0), rtt) == (pytest.approx(2.5e6), 0.08)


@pytest.mark.parametrize(
    ("bandwidths", "rtts", "words"),
    [
        (BANDWIDTHS, None, r"b.csv: tells no round-trip times; allowed: --rtt FILE"),
        (BANDWIDTHS, "ms,west\neast,80\n", r"b.csv: wan: the path from 'east' to 'north' has no round-trip time"),
        ("Mbps,east,west\neast,,fast\n", RTTS, r"b.csv, line 2 \(from 'east'\), column 'west': 'fast' is not a band"),
        ("Mbps,east,a b\neast,,4\na b,4,\n", RTTS, r"b.csv: .*'a b' may hold only letters"),
        (BANDWIDTHS, "ms,west\neast,-80\n", r"r.csv, line 2 .* negative"),
    ],
)
def test_missing_or_wrong_values_are_refused(tmp_path: Path, bandwidths: str, rtts: str | None, words: str) -> None:
    (tmp_path / "b.csv").write_text(bandwidths)
    (tmp_path / "r.csv").write_text(rtts or "")
    with pytest.raises(InputError, match=words):
        network_block(tmp_path / "b.csv", tmp_path / "r.csv" if rtts else None)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.csv: no such file or folder"):
        network_block(tmp_path / "none.csv")
