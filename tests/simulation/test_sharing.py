"""Incremental max-min sharing against progressive filling from scratch, on random changes."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.network import Mesh
from dlion_sim.simulation import flows
from dlion_sim.simulation.sharing import SharedLinks, max_min_rates
from tests.simulation import fairness

CAPACITIES = st.floats(1e-3, 1e9) | st.integers(0, 4).map(float)
LINKS = 6
ROUTES = st.lists(st.integers(0, LINKS - 1), min_size=1, max_size=4, unique=True)
BOUNDS = st.floats(1e-3, 1e9) | st.integers(1, 4).map(float)
WEIGHTS = st.integers(1, 4) | st.integers(1, 10**9)
FLOWS = st.tuples(ROUTES, st.just(np.inf), WEIGHTS) | st.tuples(ROUTES.map(lambda route: route[:3]), BOUNDS, WEIGHTS)
CHANGES = (
    st.tuples(st.just("arrives"), FLOWS)
    | st.tuples(st.just("leaves"), st.integers(0, 100))
    | st.tuples(st.just("becomes"), st.tuples(st.integers(0, LINKS - 1), CAPACITIES))
)


@pytest.mark.parametrize(("is_weighted", "tolerance"), [(False, (1e-9, 1e-300)), (True, (1e-7, 1e-6))])
@given(
    capacities=st.lists(CAPACITIES, min_size=LINKS, max_size=LINKS),
    instants=st.lists(st.lists(CHANGES, min_size=1, max_size=4), min_size=1, max_size=12),
)
def test_rates_are_those_of_progressive_filling(is_weighted, tolerance, capacities, instants):
    """A flow's bound is a link that no other flow crosses; its share of full links is proportional to its weight."""
    capacities, (relative, absolute) = list(capacities), tolerance
    links, present = SharedLinks(capacities, is_weighted=is_weighted), {}
    for now, changes in enumerate(instants):
        settled = list(present)
        for kind, what in changes:
            if kind == "arrives":
                route, most, weight = what
                present[links.add(route, 1e12, (), most, weight)] = what
            elif kind == "leaves" and settled:
                slot = settled.pop(what % len(settled))
                links.remove(slot)
                del present[slot]
            elif kind == "becomes":
                link, capacities[link] = what
                links.resize(*what)
        if now % 2:
            links = pickle.loads(pickle.dumps(links))  # Before it settles, with changes still to be considered.
        links.settle(float(now))
        routes, bounds, weights = zip(*present.values(), strict=True) if present else ((), (), ())
        routes = [(*route, LINKS + flow) if bounds[flow] < np.inf else route for flow, route in enumerate(routes)]
        expected = fairness.max_min_rates(routes, [*capacities, *bounds], weights if is_weighted else None)
        np.testing.assert_allclose(links.rates(list(present)), expected, rtol=relative, atol=absolute)


def test_thousands_of_bound_flows_share_a_link():
    links = SharedLinks([1000.0, 3000.0])
    slots = [links.add((0, 1) if flow % 2 else (1,), 1e12, most=0.1 + flow % 7) for flow in range(1500)]
    links.settle(0.0)
    bounds = [0.1 + flow % 7 for flow in range(1500)]
    ways = [(0, 1, 2 + flow) if flow % 2 else (1, 2 + flow) for flow in range(1500)]
    np.testing.assert_allclose(links.rates(slots), fairness.max_min_rates(ways, [1000.0, 3000.0, *bounds]))
    assert len(links) == 2


def with_cross_traffic(routes, return_routes, capacities, share):
    """Fair rates on what cross-traffic leaves of the capacities, repeated until nothing changes."""
    left = list(capacities)
    for _ in range(50):
        rates = fairness.max_min_rates(routes, left)
        loads = [0.0] * len(capacities)
        for way, rate in zip(return_routes, rates, strict=True):
            for link in way:
                loads[link] += share * rate
        left = [capacity - min(load, capacity / 2) for capacity, load in zip(capacities, loads, strict=True)]
    return rates


@given(
    capacities=st.lists(st.floats(1, 10), min_size=LINKS, max_size=LINKS),
    instants=st.lists(
        st.lists(st.tuples(ROUTES, ROUTES), min_size=1, max_size=4) | st.integers(0, 100), min_size=1, max_size=12
    ),
)
def test_cross_traffic_loads_return_routes(capacities, instants):
    links, present = SharedLinks(capacities, 0.02), {}
    for now, change in enumerate(instants):
        if isinstance(change, list):
            present |= {links.add(route, 1e12, back): (route, back) for route, back in change}
        elif present:
            slot = list(present)[change % len(present)]
            links.remove(slot)
            del present[slot]
        links.settle(float(now))
        if present:
            expected = with_cross_traffic(*zip(*present.values(), strict=True), capacities, 0.02)
            np.testing.assert_allclose(links.rates(list(present)), expected, rtol=0.01)


def test_without_flows_there_is_no_cross_traffic():
    links = SharedLinks([1.0, 1.0], 0.1)
    both = [links.add((0,), 1e12, (1,)), links.add((1,), 1e12, (0,))]
    links.settle(0.0)
    np.testing.assert_allclose(links.rates(both), 1 / 1.1, rtol=2e-3)
    links.remove(both[0])
    links.settle(1.0)
    assert links.rates(both[1:]).tolist() == [1.0]


class Checked(SharedLinks):
    """Shared links that compare themselves with the reference whenever they settle."""

    def __init__(self, capacities, *settings, **more):
        super().__init__(capacities, *settings, **more)
        self.capacities, self.present = capacities, {}

    def add(self, route, *about):
        slot = super().add(route, *about)
        self.present[slot] = route
        return slot

    def remove(self, slot):
        super().remove(slot)
        del self.present[slot]

    def remove_ending(self):
        slots = super().remove_ending()
        for slot in slots:
            del self.present[slot]
        return slots

    def settle(self, now):
        end = super().settle(now)
        expected = fairness.max_min_rates(list(self.present.values()), self.capacities)
        np.testing.assert_allclose(self.rates(list(self.present)), expected, rtol=1e-9)
        return end


@pytest.mark.parametrize(("workers", "rounds", "peers"), [(20, 4, 6), (32, 1, 31), (6, 20, 5)])
def test_a_busy_mesh_stays_fair_although_many_levels_tie_but_for_rounding(monkeypatch, workers, rounds, peers):
    monkeypatch.setattr(flows, "SharedLinks", Checked)
    Mesh(workers, rounds, peers).run()


def test_the_mesh_ends_when_simgrid_says():
    # SimGrid 3.32 with pure max-min sharing: benchmarks/simgrid_mesh.cpp.
    assert Mesh(32, 10, 31).run()[0] == pytest.approx(266.739, rel=1e-3)
    assert Mesh(256, 5, 8).run()[0] == pytest.approx(38.443, rel=1e-3)


def test_a_change_does_not_affect_flows_on_other_links():
    links = SharedLinks([6.0, 3.0])
    near, far = links.add((0,), 60), links.add((1,), 60)
    assert links.settle(0.0) == 10.0
    other = links.add((0,), 60)
    assert links.settle(4.0) == 16.0  # 36 bytes are left at half the rate
    assert links.rates([near, other, far]).tolist() == [3.0, 3.0, 3.0]
    assert links.remove_ending() == [near]
    assert links.settle(16.0) == 20.0
    assert links.remove_ending() == [far, other]  # whose rate has doubled


def test_thousands_of_flows_share_a_link():
    routes = [(flow % 3, 3, 4) if flow % 2 else (flow % 3, 4) for flow in range(3000)]
    capacities = [100.0, 200.0, 300.0, 150.0, 1000.0]
    links = SharedLinks(capacities)
    slots = []
    for now, begin in enumerate((0, 1, 700, 1200)):
        upto = (1, 700, 1200, 3000)[now]
        slots += [links.add(route, 1e12) for route in routes[begin:upto]]
        links.settle(float(now))
        np.testing.assert_allclose(links.rates(slots), fairness.max_min_rates(routes[:upto], capacities))
    for slot in slots[:2500]:
        links.remove(slot)
    links.settle(4.0)
    np.testing.assert_allclose(links.rates(slots[2500:]), fairness.max_min_rates(routes[2500:], capacities))


def test_hundreds_of_flows_end_in_order():
    links = SharedLinks([1.0] * 700)
    slots = [links.add((link,), 1000 - link) for link in range(700)]
    end = links.settle(0.0)
    for number, slot in enumerate(reversed(slots)):
        assert (end, links.remove_ending()) == (301.0 + number, [slot])
        end = links.settle(end)
    assert (end, links.remove_ending()) == (math.inf, [])


def test_rates_without_a_simulation():
    assert max_min_rates([(0, 1), (0,), (1,)], [1.0, 2.0]) == pytest.approx([0.5, 0.5, 1.5])
    assert max_min_rates([], [1.0]) == []


def entry(array, place, value):
    """Sets an entry of an array."""
    return lambda links: getattr(links, array).__setitem__(place, value(links) if callable(value) else value)


def attribute(name, value):
    return lambda links: setattr(links, name, value(links) if callable(value) else value)


FORGED = {
    "a route over no link": entry("_routes", (0, 0), 10**6),
    "a route over another flow's own link": entry("_routes", (1, 1), lambda links: links._routes[0, 1]),
    "no room on a flow's own link": lambda links: links._links["room"].__setitem__(1, 0),
    "no flow that crosses a link": entry("_crossing", 0, -5),
    "no link as a bottleneck": entry("_flows", 0, (1.0, 10**6, 0)),
    "no flow that is removed": entry("_left", slice(0, 1), 1 << 40),
    "a flow that arrives twice": entry("_arrived", 2, lambda links: links._arrived[3]),
    "a flow that arrives on another's link": entry(
        "_arrived", (2, slice(4)), lambda links: [0, 60, 0, links._routes[0, 1]]
    ),
    "more shared links": attribute("_shared", 10_000),
    "more room than there is": attribute("_spare", 1 << 40),
    "a negative number of removed flows": attribute("_departures", -1),
    "no unused flow": attribute("_unused", [4096]),
    "no used entries": attribute("_taken", 0),
    "an array of another length": attribute("_routes", lambda links: links._routes[:1].copy()),
    "weights of 0": attribute("_weights", np.zeros(256)),
    "weights that are no numbers": attribute("_weights", np.full(256, np.nan)),
    "fewer weights": attribute("_weights", np.ones(3)),
    "a list of weights": attribute("_weights", [1.0]),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_forged_state_is_refused(forge):
    links = SharedLinks([6.0], is_weighted=True)
    for _ in range(3):
        last = links.add((0,), 60, most=1.0)
    links.settle(0.0)
    for _ in range(4):
        links.add((0,), 60, most=1.0)
    links.remove(last)
    pickle.loads(pickle.dumps(links))
    forge(links)
    with pytest.raises((ValueError, AttributeError), match=r"links|dtype"):
        pickle.loads(pickle.dumps(links))
