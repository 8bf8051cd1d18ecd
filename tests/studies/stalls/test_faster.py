"""Scenarios with one path, NIC or machine twice as fast."""

import json
from contextlib import nullcontext

import pytest

from dlion_sim.analysis.stalls.attribution import stalls
from dlion_sim.scenario import from_data, to_data
from dlion_sim.simulation import simulate
from dlion_sim.studies.stalls import explain
from dlion_sim.studies.stalls.faster import longest_waits, with_faster
from tests.simulation.scenarios import digits

SLOW_PATH = "cluster.wan={bandwidth: 40 Mbps, rtt: 2 ms, paths: [{from: west, to: east, bandwidth: 2 Mbps}]}"


def explained(folder, *overrides, links):
    scenario = digits("system=baseline", *overrides)
    return explain(scenario, folder, iterations=12, links=links, observing=lambda _: nullcontext(lambda progress: None))


def test_the_slowest_path_is_simulated_twice_as_fast(tmp_path):
    told = explained(tmp_path, SLOW_PATH, links=1).results["faster"]
    assert [*told] == ["path from west to east"]
    (found,) = told.values()
    assert 0.5 < found["more_iterations"] <= 1
    assert 0.3 < found["less_stalled"] < 0.6
    assert json.loads((tmp_path / "stalls.json").read_text())["faster"] == told
    # Completed runs are kept, also with one more link.
    done = (tmp_path / "faster-path-from-west-to-east/manifest.json").read_bytes()
    assert len(explained(tmp_path, SLOW_PATH, links=2).results["faster"]) == 2
    assert (tmp_path / "faster-path-from-west-to-east/manifest.json").read_bytes() == done


def test_the_slowest_machine_is_found(tmp_path):
    wide = "cluster.wan={bandwidth: unlimited, rtt: 2 ms}"
    run = simulate(digits("system=baseline", wide, "cluster.clouds.1.workers.0.compute=1 cores"), tmp_path / "run")
    assert longest_waits(stalls(run, 2))[0] == "machine of west/0"


def doubled(name, *overrides):
    return from_data(with_faster(to_data(digits(*overrides)), name)).cluster


@pytest.mark.parametrize(
    ("name", "paths"),
    [("path from east to west", (80e6, 40e6)), ("path from west to east", (40e6, 80e6))],
)
@pytest.mark.parametrize(
    "wan",
    [
        "{bandwidth: 40 Mbps, rtt: 60 ms}",
        "{rtt: 60 ms, paths: [{between: [west, east], bandwidth: 40 Mbps, rtt: 60 ms}]}",
        "{rtt: 60 ms, matrix: {east: {west: 40 Mbps}, west: {east: 40 Mbps}}}",
        "{bandwidth: 1 Mbps, rtt: 5 ms, paths: [{between: [west, '*'], bandwidth: 40 Mbps, rtt: 60 ms}]}",
        "{rtt: 60 ms, paths: [{from: east, to: '*', bandwidth: 40 Mbps}, {from: west, to: east, bandwidth: 40 Mbps}]}",
        "{rtt_matrix: {east: {west: 60 ms}}, paths: [{between: ['*', '*'], bandwidth: 40 Mbps}]}",
    ],
)
def test_a_path_is_faster_in_one_direction(name, paths, wan):
    cluster = doubled(name, f"cluster.wan={wan}")
    bandwidths = [cluster.wan_path(*ends)[0].value_at(0.0) for ends in (("east", "west"), ("west", "east"))]
    assert bandwidths == pytest.approx(paths)
    assert [cluster.wan_path(*ends)[1] for ends in (("east", "west"), ("west", "east"))] == [0.06, 0.06]


def test_one_worker_of_a_group_is_faster():
    before = digits().cluster.workers
    up = doubled("uplink of east/1").workers
    assert [worker.name for worker in up] == [worker.name for worker in before]
    assert [now.nic.up.value_at(0) / was.nic.up.value_at(0) for now, was in zip(up, before, strict=True)] == [1, 2, 1]
    assert [now.nic.down for now in up] == [was.nic.down for was in before]
    steps = "cluster.clouds.1.workers.0.compute={steps: {0 s: 4 cores, 2 s: 2 cores}}"
    machine = doubled("machine of west/0", steps).workers[2].compute.cores
    assert [machine.value_at(time) for time in (0.0, 3.0)] == [8, 4]
