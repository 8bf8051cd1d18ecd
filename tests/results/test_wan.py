"""Bytes that cross from one micro-cloud to another, as new and old run folders tell them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dlion_sim.results import Frames, Run
from dlion_sim.simulation import simulate
from tests.made_up import made_up_run
from tests.simulation.scenarios import digits

CLOUDS = [
    {"name": "east", "workers": [{"count": 2, "compute": "24 cores", "nic": "50 Mbps"}]},
    {"name": "west", "workers": [{"compute": "4 cores", "nic": "20 Mbps"}]},
]
WAN = {"bandwidth": "40 Mbps", "rtt": "60 ms"}


def between_clouds(run: Run) -> int:
    links = run.links()
    crosses = (links["sender"] == 2) | (links["receiver"] == 2)  # the only worker of west
    return int(links.loc[crosses, "bytes"].sum())


def test_wan_bytes_of_a_simulation(tmp_path: Path) -> None:
    run = simulate(digits("system=baseline", cluster={"clouds": CLOUDS, "wan": WAN}), tmp_path / "run")
    assert run.outcome["wan_bytes"] == between_clouds(run) == run.wan_bytes
    assert 0 < run.outcome["wan_bytes"] < run.outcome["bytes_sent"]
    assert run.has_wan


def test_parameter_servers_are_in_clouds_too(tmp_path: Path) -> None:
    topology = {"kind": "parameter_server", "hosts": [2]}
    run = simulate(
        digits("system=parameter_server", f"system.topology={topology}", cluster={"clouds": CLOUDS, "wan": WAN}),
        tmp_path / "run",
    )
    links = run.links()
    assert {*links.loc[links["wan_bytes"] > 0, "sender"]} == {0, 1, 3}
    assert run.outcome["wan_bytes"] == links["wan_bytes"].sum()


def test_one_cloud_has_no_wan(tmp_path: Path) -> None:
    run = made_up_run(tmp_path / "run")
    assert (run.has_wan, run.wan_bytes, run.links()["wan_bytes"].sum()) == (False, 0, 0)


def test_links_of_a_run_tell_which_bytes_crossed_the_wan(tmp_path: Path) -> None:
    links = made_up_run(tmp_path / "run", workers=4, clouds=("east", "east", "west")).links()
    # 0 to 1 stays in east, 1 to 2 and 2 to 3 cross; the fourth worker is in east again.
    assert links.groupby("sender")["wan_bytes"].sum().tolist() == [0, 2_000_000, 2_000_000, 0]
    assert links["bytes"].sum() == 8_000_000


@pytest.mark.parametrize("with_clouds", [True, False])
def test_older_run_folders_are_derived_from_their_links(tmp_path: Path, with_clouds: bool) -> None:
    run = made_up_run(tmp_path / "run", clouds=("east", "west"))
    assert run.wan_bytes == 4_000_000
    for file, key in (("summary.json", "wan_bytes"), ("manifest.json", "clouds")):
        if file == "summary.json" or not with_clouds:
            told = json.loads((run.folder / file).read_text())
            told.pop(key, None)
            (run.folder / file).write_text(json.dumps(told))
    old = Run.open(run.folder)
    assert "wan_bytes" not in old.outcome
    assert old.wan_bytes == 4_000_000
    summaries = Frames.of([tmp_path]).summaries
    assert summaries[["wan_bytes", "bytes_sent"]].to_numpy().tolist() == [[4_000_000, 4_000_000]]
    assert summaries["wan_bytes"].dtype == int


def test_wan_bytes_of_a_run_in_progress(tmp_path: Path) -> None:
    run = made_up_run(tmp_path / "run", clouds=("east", "west"))
    (run.folder / "summary.json").unlink()
    told = json.loads((run.folder / "manifest.json").read_text())
    (run.folder / "manifest.json").write_text(json.dumps({**told, "status": "running"}))
    assert Run.open(run.folder).wan_bytes == 4_000_000
