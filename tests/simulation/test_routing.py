"""Which links messages cross: NICs, LANs, paths, and the fabric of leaves and spines."""

from collections import Counter
from itertools import permutations
from types import SimpleNamespace

import pytest

from dlion_sim.scenario import from_data
from dlion_sim.scenario.system import ServerHost
from dlion_sim.simulation.delivery import Transport
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.routing import Route, Routing
from tests.simulation.agendas import finish
from tests.simulation.test_delivery import gradient, on_the_wire


def leaf_spine(servers=(), workers=8, **fabric):
    """A cloud of eight workers at four leaves under two spines, and one of two workers elsewhere."""
    east = {
        "name": "east",
        "workers": [{"count": workers, "nic": {"up": "1 Gbps", "down": "2 Gbps"}}],
        "lan": {"rtt": "10 us", "fabric": {"leaves": 4, "spines": 2, **fabric}},
    }
    west = {"name": "west", "workers": [{"count": 2}], "lan": {"bandwidth": "5 Gbps"}}
    data = {
        "name": "t",
        "duration": "1 s",
        "workload": {"dataset": "digits"},
        "cluster": {"clouds": [east, west], "wan": {"bandwidth": "40 Mbps", "rtt": "60 ms"}},
        "system": "dlion",
    }
    return Routing(from_data(data).cluster, servers)


def crossed(routing, route):
    return [routing.names[link] for link in route.links]


def capacity(routing, name):
    return routing.capacities_bps[routing.names.index(name)].value_at(0)


def test_there_is_a_route_over_each_spine():
    routing = leaf_spine()
    ways = [
        ["east/0 up", "east leaf 0 -> spine 0", "east spine 0 -> leaf 3", "east/7 down"],
        ["east/0 up", "east leaf 0 -> spine 1", "east spine 1 -> leaf 3", "east/7 down"],
    ]
    paths = routing.paths(0, 7)
    assert [crossed(routing, path) for path in paths] == ways
    assert routing.route(0, 7) in paths
    assert {path.latency for path in paths} == {5e-6}


def test_routes_within_a_leaf_and_between_clouds_cross_no_spine():
    routing = leaf_spine()
    assert crossed(routing, routing.route(0, 1)) == ["east/0 up", "east/1 down"]
    assert crossed(routing, routing.route(0, 9)) == ["east/0 up", "east -> west", "west/1 down"]
    assert crossed(routing, routing.route(8, 9)) == ["west/0 up", "west lan", "west/1 down"]
    for pair in [(0, 1), (0, 9), (8, 9), (3, 3)]:
        assert routing.paths(*pair) == (routing.route(*pair),)
    assert routing.route(3, 3) == Route((), 0.0)


def test_the_route_of_a_pair_is_fixed_and_spines_are_shared_evenly():
    routing = leaf_spine(workers=64)
    chosen = {pair: routing.route(*pair).links for pair in permutations(range(64), 2)}
    again = leaf_spine(workers=64)
    assert all(again.route(*pair).links == links for pair, links in chosen.items())
    over = Counter(routing.names[links[1]][-1] for links in chosen.values() if len(links) == 4)
    assert over["0"] == pytest.approx(over["1"], rel=0.1)


def test_capacities_of_links_to_spines_follow_from_machines_and_oversubscription():
    assert capacity(leaf_spine(), "east leaf 1 -> spine 0") == 1e9
    assert capacity(leaf_spine(), "east spine 0 -> leaf 1") == 2e9
    assert capacity(leaf_spine(oversubscription=4), "east leaf 1 -> spine 0") == 0.25e9
    assert capacity(leaf_spine(bandwidth="3 Gbps"), "east spine 1 -> leaf 2") == 3e9


def test_workers_are_spread_in_order_and_servers_after_them():
    own = ServerHost(cloud="east")
    routing = leaf_spine([3, own, own, ServerHost(cloud="west")])
    assert routing._fabrics["east"].leaf == {0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 5: 2, 6: 3, 7: 3, 10: 0, 11: 1}
    assert crossed(routing, routing.route(0, 11)) == ["east/0 up", "server 11 down"]
    assert len(routing.paths(0, 12)) == 2
    assert crossed(routing, routing.route(0, 10)) == crossed(routing, routing.route(0, 3))
    assert crossed(routing, routing.route(0, 13)) == ["east/0 up", "east -> west", "server 13 down"]
    assert [leaf_spine(workers=5)._fabrics["east"].leaf[worker] for worker in range(5)] == [0, 0, 1, 2, 3]


def test_flows_share_the_links_to_a_spine():
    """Both workers of a leaf send to another one, over links of 0.5 Gbps."""
    routing, event_queue, ends = leaf_spine(oversubscription=2), EventQueue(), []
    transport = Transport(
        event_queue,
        routing,
        SimpleNamespace(
            sent=lambda _: None,
            timed=lambda *_: None,
            delivered=lambda *_: ends.append(event_queue.now),
            changed=lambda: None,
        ),
    )
    receiver = {routing.route(0, each).links[1]: each for each in range(2, 8)}  # over either spine
    [one, *_] = (each for each in range(2, 8) if routing.route(1, each).links[1] in receiver)
    same, message = receiver[routing.route(1, one).links[1]], gradient(0)
    transport.send(same, message)
    transport.send(one, gradient(1))
    finish(event_queue)
    assert ends == [pytest.approx(2 * on_the_wire(message) * 8 / 0.5e9 + 5e-6)] * 2
