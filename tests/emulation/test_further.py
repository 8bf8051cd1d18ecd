"""What an emulation is held against besides its simulation; test_emulate.py emulates for real."""

import json

import pytest

from dlion_sim.errors import InputError
from dlion_sim.scenario import Packets, Reliable
from dlion_sim.simulation import simulate
from dlion_sim.studies.validation import EMULATED, SIMULATED
from emulation.further import OFF, by_default, by_packets, neighbour_of, neighbours, with_queues
from tests.simulation.scenarios import digits


def never() -> bool:
    return False


def emulated(scenario, folder):
    """A run that is simulated as if it were emulated by a kernel that cannot delay."""
    run = simulate(scenario, folder / EMULATED)
    manifest = folder / EMULATED / "manifest.json"
    told = {**json.loads(manifest.read_text()), "emulation": {"delay": "transport"}}
    manifest.write_text(json.dumps(told))
    return run


@pytest.mark.parametrize("are_delayed", [False, True])
def test_queues_are_those_of_emulated_links_and_all_else_stays(are_delayed):
    scenario = digits("duration=2 s", "network.tcp=window")
    alike = with_queues(scenario, are_delayed=are_delayed)
    model = alike.network.model
    assert isinstance(model, Packets)
    assert (model.fair, model.buffer, model.burst) == (True, 23 * 1514, 3 * 1514)
    assert model.delays == ("links" if are_delayed else "receivers")
    assert alike.transport == Reliable(recovery="linux")
    # Nothing is marked or dropped before a queue is full.
    assert model.drop_above == model.mark_above == model.buffer
    assert (alike.cluster, alike.system, alike.workload) == (scenario.cluster, scenario.system, scenario.workload)


def test_packets_have_the_queue_that_flows_say():
    alike = with_queues(digits("network.model={kind: flows, queue: 40 packets}"), are_delayed=False)
    assert isinstance(alike.network.model, Packets)
    assert alike.network.model.buffer == 39 * 1514


def test_queues_that_the_scenario_says_stay():
    scenario = digits("network.model={kind: packets, buffer: 40 packets}")
    assert with_queues(scenario, are_delayed=False) == scenario


def test_a_simulation_by_packets_is_compared_with_the_emulation(tmp_path):
    scenario = digits("duration=3 s", "system=baseline", "cluster.wan.bandwidth=5 Mbps")
    emulated(with_queues(scenario, are_delayed=False), tmp_path)
    found = by_packets(scenario, tmp_path, never)
    assert max(found.values()) == 0
    assert by_packets(scenario, tmp_path, never) == found


def test_a_simulation_by_default_is_compared_with_the_emulation(tmp_path):
    links = ("duration=3 s", "system=baseline", "cluster.wan.bandwidth=5 Mbps")
    queued = digits(*links, "network.model={kind: flows, queue: 24 packets, acknowledgements: 0.6}")
    emulated(digits(*links), tmp_path / "default")
    assert max(by_default(queued, tmp_path / "default", never).values()) == 0
    emulated(queued, tmp_path / "queued")
    assert 0 < by_default(queued, tmp_path / "queued", never)["iteration_median"] < 0.05


def test_neighbours_have_all_bandwidths_a_little_off_and_nothing_else():
    scenario = digits("duration=2 s")
    neighbour = neighbour_of(scenario, 0)
    ours, theirs = ([worker.nic.up.value_at(0) for worker in one.cluster.workers] for one in (scenario, neighbour))
    assert all(0 < abs(other / one - 1) <= OFF for one, other in zip(ours, theirs, strict=True))
    assert neighbour != neighbour_of(scenario, 1)
    assert neighbour == neighbour_of(scenario, 0)
    assert neighbour.workload == scenario.workload


def test_neighbours_are_compared_with_the_simulation(tmp_path):
    scenario = digits("duration=3 s", "system=baseline", "cluster.wan.bandwidth=500 kbps")
    simulate(scenario, tmp_path / SIMULATED)
    assert 0 < neighbours(scenario, tmp_path, never)["iteration_median"] < 0.05


def test_without_the_simulation_it_says_so(tmp_path):
    with pytest.raises(InputError, match="is not a run folder"):
        neighbours(digits(), tmp_path, never)


def test_what_was_interrupted_is_no_comparison(tmp_path):
    scenario = digits("duration=3 s")
    emulated(scenario, tmp_path)
    with pytest.raises(InputError, match="is interrupted"):
        by_packets(scenario, tmp_path, lambda: True)
