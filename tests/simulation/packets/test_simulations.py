"""Whole simulations over packets: they learn as those over flows, in nearly their time, and resume to the bit."""

import subprocess
import sys

import pandas as pd
import pytest

from dlion_sim.errors import InputError
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.simulation import resume, simulate
from tests.simulation.checkpointing.test_checkpoint import CHANGING, After, check_same, scenario
from tests.simulation.scenarios import digits

PACKETS = "network={model: packets}"
DEEP = "network={model: {kind: packets, buffer: 1 MB, mark_above: 1 MB, drop_above: 1 MB}}"
WINDOWS = "network={tcp: window}"
TRANSPORTS = {
    "reliable": [],
    "pfabric": ["transport=pfabric"],
    "dlcp": ["transport=dlcp"],
    "stale": ["transport={kind: dlcp, fill: stale, stop_early: false}"],
    "fair": [
        "network={model: {kind: packets, fair: true, delays: receivers}}",
        "transport={kind: reliable, recovery: linux}",
    ],
    "sprayed": [
        "network={model: {kind: packets, paths: spray, shared_buffer: true}}",
        "transport={kind: dlcp, loss_bound: 0.2}",
    ],
}


def run(folder, *overrides, **keys):
    return simulate(digits("system=baseline", "workload.evaluate_every=1 s", *overrides, **keys), folder)


def two_clouds(**workers):
    return [{"name": name, "workers": [{"compute": "24 cores", **workers}]} for name in ("east", "west")]


def learned(run):
    """The losses of workers by iteration, which do not depend on times."""
    rows = run.metrics()
    return rows[rows["kind"] == "iteration"].set_index(["worker", "iteration"])["loss"].sort_index()


@pytest.mark.parametrize("system", ["baseline", "parameter_server", "ring_allreduce"])
@pytest.mark.parametrize("transport", ["reliable", "pfabric", "{kind: dlcp, loss_bound: 0}"])
def test_synchronous_training_over_packets_equals_that_over_flows(tmp_path, transport, system):
    """To the bit: no packet may be missing, and all workers wait for each other."""
    of = f"system={system}", "duration=2 s"
    packets = run(tmp_path / "packets", PACKETS, f"transport={transport}", *of, "cluster.wan.loss=0.005")
    flows = run(tmp_path / "flows", *of)
    one, other = learned(packets), learned(flows)
    both = one.index.intersection(other.index)
    assert len(both) >= 12
    pd.testing.assert_series_equal(one[both], other[both], check_exact=True)


def test_missing_bytes_are_recorded(tmp_path):
    quick = "cluster.wan.rtt=1 ms"  # so that a STOP comes before all has been sent
    ended = run(tmp_path / "run", PACKETS, "transport={kind: dlcp, loss_bound: 0.3}", quick, "duration=1 s")
    transfers, parts = ended.transfers(), ended.parts()
    done = transfers[transfers["end"].notna()]
    assert (done["lost_bytes"] <= 0.3 * (done["bytes"] + done["saved_bytes"])).all()
    assert done["saved_bytes"].sum() > 0
    assert (done["delivered"] < done["end"]).all()
    assert parts["lost_bytes"].sum() == done["lost_bytes"].sum()
    queues = ended.queues()
    assert {"east/0 up", "east -> west", "west/0 down"} <= set(queues["port"])
    assert queues["bytes"].sum() > done["bytes"].sum()


def test_dlcp_needs_packets(tmp_path):
    with pytest.raises(InputError, match="flow model does not have"):
        run(tmp_path / "run", "transport=dlcp")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_run_interrupted_repeatedly_has_the_same_result(tmp_path, transport):
    given = digits(
        "system=baseline",
        "workload.evaluate_every=0.3 s",
        PACKETS,
        *TRANSPORTS[transport],
        "cluster.wan.loss=0.003",
        cluster=CHANGING,
        duration="0.9 s",
    )
    whole = simulate(given, tmp_path / "whole")
    parts = simulate(given, tmp_path / "parts", interrupted=After(17))
    while parts.manifest["status"] == "interrupted":
        parts = resume(tmp_path / "parts", interrupted=After(29))
    assert len(parts.manifest["resumed_at"]) >= 3
    check_same(parts, whole)
    pd.testing.assert_frame_equal(parts.queues(), whole.queues(), check_exact=True)


@pytest.mark.parametrize("gone", ["way", "way back"])
@pytest.mark.parametrize("transport", ["reliable", "pfabric", "dlcp"])
def test_a_link_that_is_down_for_good_is_a_stall(tmp_path, transport, gone):
    ends = ("east", "west") if gone == "way" else ("west", "east")
    path = {"from": ends[0], "to": ends[1], "bandwidth": {"steps": {"0 s": "40 Mbps", "0.5 s": "0 Mbps"}}}
    wan = {"bandwidth": "40 Mbps", "rtt": "20 ms", "paths": [path, {"from": ends[1], "to": ends[0]}]}
    clouds = two_clouds(nic="50 Mbps")
    ended = run(
        tmp_path / "run", PACKETS, f"transport={transport}", "duration=1000 s", cluster={"clouds": clouds, "wan": wan}
    )
    assert ended.summary["stopped_by"] == "stall"
    assert ended.summary["virtual_seconds"] < 60


def test_an_outage_passes(tmp_path):
    nic = {"steps": {"0 s": "50 Mbps", "0.5 s": "0 Mbps", "1.5 s": "50 Mbps"}}
    clouds = two_clouds(nic=nic)
    wan = {"bandwidth": "40 Mbps", "rtt": "20 ms"}
    ended = run(tmp_path / "run", PACKETS, "duration=4 s", cluster={"clouds": clouds, "wan": wan})
    assert ended.summary["stopped_by"] == "duration"
    ends = ended.transfers()["end"].dropna()
    assert not ends.between(0.7, 1.5).any()
    assert (ends > 2).sum() > 10


def seconds_an_iteration(run):
    rows = run.metrics()
    return run.summary["virtual_seconds"] / rows.groupby("worker")["iteration"].max().mean()


def test_packets_take_as_long_as_flows_without_congestion(tmp_path):
    """Within 2 %."""
    clouds = [
        {"name": name, "workers": [{"count": 2, "compute": "24 cores", "nic": "1 Gbps"}]} for name in ("east", "west")
    ]
    cluster = {"clouds": clouds, "wan": {"bandwidth": "800 Mbps", "rtt": "10 ms"}}
    packets = run(tmp_path / "packets", DEEP, "duration=4 s", cluster=cluster)
    flows = run(tmp_path / "flows", WINDOWS, "duration=4 s", cluster=cluster)
    one, other = seconds_an_iteration(packets), seconds_an_iteration(flows)
    print(f"uncongested: {one:.4f} s with packets, {other:.4f} s with flows, {one / other - 1:+.1%}")
    assert one == pytest.approx(other, rel=0.02)


@pytest.mark.parametrize("bandwidth", ["10 Mbps", "20 Mbps", "40 Mbps"])
def test_packets_take_as_long_as_flows_on_a_shared_path(tmp_path, bandwidth):
    """Within 5 %, where the path's queue holds as much as is under way."""
    clouds = [
        {"name": name, "workers": [{"count": 2, "compute": "24 cores", "nic": "100 Mbps"}]} for name in ("east", "west")
    ]
    cluster = {"clouds": clouds, "wan": {"bandwidth": bandwidth, "rtt": "60 ms"}}
    packets = run(tmp_path / "packets", DEEP, "duration=8 s", cluster=cluster)
    flows = run(tmp_path / "flows", WINDOWS, "duration=8 s", cluster=cluster)
    one, other = seconds_an_iteration(packets), seconds_an_iteration(flows)
    print(f"{bandwidth}: {one:.4f} s with packets, {other:.4f} s with flows, {one / other - 1:+.1%}")
    assert one == pytest.approx(other, rel=0.05)


@pytest.mark.parametrize("system", sorted(SYSTEMS))
def test_every_system_runs_with_bounded_loss(tmp_path, system):
    given = scenario(system, "0.6 s", PACKETS, "transport={kind: dlcp, loss_bound: 0.2}", "cluster.wan.loss=0.02")
    ended = simulate(given, tmp_path / "run")
    assert ended.summary["stopped_by"] == "duration"
    assert ended.summary["iterations"]["mean"] >= 1


def test_flows_do_not_load_what_packets_need():
    words = "import dlion_sim.simulation, sys; print(*(name for name in sys.modules if name.startswith('dlion_sim')))"
    loaded = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True).stdout.split()
    assert "dlion_sim.simulation.engine" in loaded
    assert not [name for name in loaded if "packets" in name or name == "dlion_sim.bounded_loss.dlcp"]
