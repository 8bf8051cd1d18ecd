"""The scenarios that `python -m emulation.draw` draws."""

from collections import Counter

import pytest

from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.protocol.topology import mixing_weights
from dlion_sim.scenario import load
from emulation.draw import draw, main

GRADIENT_BITS = 8 * 407_080 * 1514 / 1448
"""Of the mlp, in frames."""
DRAWN = [draw(number, seed=1) for number in range(4 * len(SYSTEMS))]


@pytest.fixture(params=DRAWN, ids=lambda scenario: scenario.name)
def scenario(request):
    return request.param


def bandwidths(scenario):
    """The capacities of each NIC's and path's directions, Mbps."""
    wan = scenario.cluster.wan
    nics = [schedule for place in scenario.cluster.workers for schedule in (place.nic.up, place.nic.down)]
    for schedule in (*nics, *(path.bandwidth for path in wan.paths)):
        yield [capacity / 1e6 for _, capacity in schedule.steps]


def seconds(scenario):
    """What 32 samples take on each machine, without noise."""
    cost = scenario.workload.compute_time
    return [cost.alpha + cost.beta * 32 / place.compute.cores.value_at(0) for place in scenario.cluster.workers]


def test_a_number_and_a_seed_decide():
    assert draw(5, seed=3) == draw(5, seed=3)
    different = [draw(5, seed=3), draw(5, seed=4), draw(6, seed=3)]
    assert len({str(scenario.cluster) for scenario in different}) == 3


def test_what_is_written_loads_and_does_not_depend_on_how_many_are_drawn(tmp_path):
    main(["--count", "2", "--seed", "1", "--output", str(tmp_path / "few")])
    main(["--count", "12", "--seed", "1", "--output", str(tmp_path / "many")])
    files = sorted((tmp_path / "many").iterdir())
    assert [load(file) for file in files] == DRAWN[:12]
    assert [file.name for file in files] == [f"{scenario.name}.yaml" for scenario in DRAWN[:12]]
    for file in (tmp_path / "few").iterdir():
        assert file.read_bytes() == (tmp_path / "many" / file.name).read_bytes()


def test_each_system_is_drawn_as_often():
    assert Counter(scenario.system.name for scenario in DRAWN) == dict.fromkeys(SYSTEMS, 4)
    orders = [[scenario.system.name for scenario in DRAWN[first : first + len(SYSTEMS)]] for first in (0, len(SYSTEMS))]
    assert orders[0] != orders[1]


def test_places_and_links_are_within_bounds(scenario):
    assert scenario.duration == 40
    assert 3 <= len(scenario.cluster.workers) <= 6
    assert 2 <= len(scenario.cluster.clouds) <= 4
    assert all(5 <= capacity <= 40 for steps in bandwidths(scenario) for capacity in steps)
    assert all(0 <= path.rtt <= 0.06 for path in scenario.cluster.wan.paths)
    assert all(0 <= place.compute.noise <= 0.15 for place in scenario.cluster.workers)


def test_learning_is_as_asked_for(scenario):
    workload = scenario.workload
    assert (workload.dataset, workload.model) == ("fashion_mnist", "mlp")
    assert workload.optimizer.learning_rate == 0.02
    assert scenario.duration % workload.evaluate_every > 0.001


def test_two_cores_carry_it(scenario):
    """A real gradient, and what a node does beside, take 10 ms."""
    assert sum(0.01 / each for each in seconds(scenario)) < 0.5


def test_systems_have_the_graph_and_parameters_that_they_need(scenario):
    system = compose(scenario.system)
    workers = len(scenario.cluster.workers)
    mixing_weights(system.topology, workers, scenario.seed)
    period = scenario.system.exchange and scenario.system.exchange.parameters.get("period")
    if scenario.system.name in ("local_sgd", "diloco"):
        slowest = min(capacity for steps in bandwidths(scenario) for capacity in steps)
        most = max(workers - 1, (workers // 2) * -(-workers // 2))  # That share a NIC, or a path between two clouds.
        exchange = most * GRADIENT_BITS / (slowest * 1e6)
        assert 40 / (period * max(seconds(scenario)) + exchange) > 3


def test_some_of_everything_is_drawn():
    steps = [sum(len(steps) > 1 for steps in bandwidths(scenario)) for scenario in DRAWN]
    assert 0.2 < sum(map(bool, steps)) / len(DRAWN) < 0.9
    assert {len(scenario.cluster.workers) for scenario in DRAWN} == {3, 4, 5, 6}
    assert {len(scenario.cluster.clouds) for scenario in DRAWN} == {2, 3, 4}
    cores = [{place.compute.cores for place in scenario.cluster.workers} for scenario in DRAWN]
    assert sum(len(each) > 1 for each in cores) > 0.9 * len(DRAWN)
    values = [capacity for scenario in DRAWN for steps in bandwidths(scenario) for capacity in steps]
    assert 0.25 < sum(value < 10 for value in values) / len(values) < 0.42
