"""Incremental max-min sharing against filling up from nothing, over random comings and goings."""

import math
import pickle

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.network import Mesh
from dlion_sim.simulation import flows
from dlion_sim.simulation.sharing import SharedLinks, max_min_rates
from tests.simulation import fairness

CAPACITIES = st.floats(1e-3, 1e9) | st.integers(0, 4).map(float)
LINKS = 6
ROUTES = st.lists(st.integers(0, LINKS - 1), min_size=1, max_size=4, unique=True)
CHANGES = (
    st.tuples(st.just("arrives"), ROUTES)
    | st.tuples(st.just("leaves"), st.integers(0, 100))
    | st.tuples(st.just("becomes"), st.tuples(st.integers(0, LINKS - 1), CAPACITIES))
)


@given(
    capacities=st.lists(CAPACITIES, min_size=LINKS, max_size=LINKS),
    instants=st.lists(st.lists(CHANGES, min_size=1, max_size=4), min_size=1, max_size=12),
)
def test_rates_are_those_of_filling_up_from_nothing(capacities, instants):
    capacities = list(capacities)
    links, present = SharedLinks(capacities), {}
    for now, changes in enumerate(instants):
        settled = list(present)
        for kind, what in changes:
            if kind == "arrives":
                present[links.add(what, 1e12)] = what
            elif kind == "leaves" and settled:
                slot = settled.pop(what % len(settled))
                links.remove(slot)
                del present[slot]
            elif kind == "becomes":
                link, capacities[link] = what
                links.resize(*what)
        links.settle(float(now))
        expected = fairness.max_min_rates(list(present.values()), capacities)
        np.testing.assert_allclose(links.rates(list(present)), expected, rtol=1e-9, atol=1e-300)


BOUNDS = st.floats(1e-3, 1e9) | st.integers(1, 4).map(float)


@given(
    capacities=st.lists(CAPACITIES, min_size=LINKS, max_size=LINKS),
    instants=st.lists(
        st.lists(st.tuples(ROUTES.map(lambda route: route[:3]), BOUNDS | st.just(np.inf)), min_size=1, max_size=4)
        | st.integers(0, 100),
        min_size=1,
        max_size=12,
    ),
)
def test_a_bound_of_a_flow_is_a_link_that_nobody_else_crosses(capacities, instants):
    links, present = SharedLinks(capacities), {}
    for now, change in enumerate(instants):
        if isinstance(change, list):
            present |= {links.add(route, 1e12, most=most): (route, most) for route, most in change}
        elif present:
            slot = list(present)[change % len(present)]
            links.remove(slot)
            del present[slot]
        links = pickle.loads(pickle.dumps(links))  # before it settles, when what has come is still to be looked at
        links.settle(float(now))
        bounds = [most for _, most in present.values()]
        ways = [
            (*route, LINKS + flow) if most < np.inf else route for flow, (route, most) in enumerate(present.values())
        ]
        expected = fairness.max_min_rates(ways, [*capacities, *bounds])
        np.testing.assert_allclose(links.rates(list(present)), expected, rtol=1e-9, atol=1e-300)


WEIGHTS = st.integers(1, 4) | st.integers(1, 10**9)
WEIGHTED = st.tuples(ROUTES.map(lambda route: route[:3]), BOUNDS | st.just(np.inf), WEIGHTS)


@given(
    capacities=st.lists(CAPACITIES, min_size=LINKS, max_size=LINKS),
    instants=st.lists(
        st.lists(WEIGHTED, min_size=1, max_size=4)
        | st.integers(0, 100)
        | st.tuples(st.integers(0, LINKS - 1), CAPACITIES),
        min_size=1,
        max_size=12,
    ),
)
def test_flows_with_weights_have_their_rate_in_proportion(capacities, instants):
    capacities = list(capacities)
    links, present = SharedLinks(capacities, is_weighted=True), {}
    for now, change in enumerate(instants):
        if isinstance(change, list):
            present |= {
                links.add(route, 1e12, (), most, weight): (route, most, weight) for route, most, weight in change
            }
        elif isinstance(change, tuple):
            capacities[change[0]] = change[1]
            links.resize(*change)
        elif present:
            slot = list(present)[change % len(present)]
            links.remove(slot)
            del present[slot]
        links.settle(float(now))
        routes, bounds, weights = zip(*present.values(), strict=True) if present else ((), (), ())
        ways = [(*route, LINKS + flow) if bounds[flow] < np.inf else route for flow, route in enumerate(routes)]
        expected = fairness.max_min_rates(ways, [*capacities, *bounds], weights)
        np.testing.assert_allclose(links.rates(list(present)), expected, rtol=1e-7, atol=1e-6)


def test_thousands_of_bound_flows_share_a_link():
    links = SharedLinks([1000.0, 3000.0])
    slots = [links.add((0, 1) if flow % 2 else (1,), 1e12, most=0.1 + flow % 7) for flow in range(1500)]
    links.settle(0.0)
    bounds = [0.1 + flow % 7 for flow in range(1500)]
    ways = [(0, 1, 2 + flow) if flow % 2 else (1, 2 + flow) for flow in range(1500)]
    np.testing.assert_allclose(links.rates(slots), fairness.max_min_rates(ways, [1000.0, 3000.0, *bounds]))
    assert len(links) == 2


def lead_elsewhere(links):
    """The second flow, over the link that is the first one's own."""
    links._routes[1, 1] = links._routes[0, 1]


def leave_no_room(links):
    links._links["room"][1] = 0


def arrive_twice(links):
    links._arrived[2] = links._arrived[3]


def arrive_where_one_is(links):
    links._arrived[2, :4] = [0, 60, 0, links._routes[0, 1]]


def share_more_links(links):
    links._shared = 10_000


@pytest.mark.parametrize(
    "mislead", [lead_elsewhere, leave_no_room, arrive_twice, arrive_where_one_is, share_more_links]
)
def test_own_links_that_others_would_cross_are_refused(mislead):
    links = SharedLinks([6.0])
    for _ in range(2):
        links.add((0,), 60, most=1.0)
    links.settle(0.0)
    for _ in range(4):
        links.add((0,), 60, most=1.0)
    pickle.loads(pickle.dumps(links))
    mislead(links)
    with pytest.raises(ValueError, match="indices of links are out of bounds"):
        pickle.loads(pickle.dumps(links))


@pytest.mark.parametrize("weights", [np.zeros(256), np.full(256, np.nan), np.ones(3), None])
def test_weights_that_nothing_can_weigh_are_refused(weights):
    links = SharedLinks([6.0], is_weighted=True)
    links.add((0,), 60, weight=3)
    links.settle(0.0)
    pickle.loads(pickle.dumps(links))
    links._weights = [1.0] if weights is None else weights
    with pytest.raises((ValueError, AttributeError), match=r"links|dtype"):
        pickle.loads(pickle.dumps(links))


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
def test_cross_traffic_takes_its_part_of_the_ways_back(capacities, instants):
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


def test_without_flows_nothing_is_left_of_their_cross_traffic():
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


def test_a_message_takes_two_events_of_simpys(monkeypatch):
    """Its end and its delivery; some ends are planned in vain, as other messages come in between."""
    scheduled, schedule = [], simpy.Environment.schedule
    monkeypatch.setattr(
        simpy.Environment, "schedule", lambda *about, **more: scheduled.append(about) or schedule(*about, **more)
    )
    Mesh(6, 20, 5).run()
    assert len(scheduled) < 2.5 * 6 * 20 * 5


def test_a_change_leaves_flows_that_it_does_not_reach_as_they_are():
    links = SharedLinks([6.0, 3.0])
    near, far = links.add((0,), 60), links.add((1,), 60)
    assert links.settle(0.0) == 10.0
    other = links.add((0,), 60)
    assert links.settle(4.0) == 16.0  # 36 bytes are left at half the rate
    assert links.rates([near, other, far]).tolist() == [3.0, 3.0, 3.0]
    assert links.remove_ending() == [near]
    assert links.settle(16.0) == 20.0
    assert links.remove_ending() == [far, other]  # whose rate has doubled


def test_a_slot_is_used_again():
    links = SharedLinks([1.0])
    first = links.add((0,), 1)
    links.settle(0.0)
    links.remove(first)
    links.settle(1.0)
    assert links.add((0,), 1) == first
    assert links.settle(5.0) == 6.0


def test_a_link_that_is_crossed_by_thousands():
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


def test_links_that_were_saved_go_on_by_themselves():
    links = SharedLinks([6.0, 3.0])
    flows = [links.add((0,), 60), links.add((0, 1), 60)]
    links.settle(0.0)
    saved = pickle.loads(pickle.dumps(links))
    links.remove(flows[0])
    assert links.settle(10.0) == 20.0
    assert saved.rates(flows).tolist() == [3.0, 3.0]
    saved.resize(0, 2.0)
    assert saved.settle(10.0) == 40.0
    assert saved.remove_ending() == flows
    assert links.rates(flows[1:]).tolist() == [3.0]


def test_hundreds_of_flows_are_found_by_their_ends():
    links = SharedLinks([1.0] * 700)
    slots = [links.add((link,), 1000 - link) for link in range(700)]
    end = links.settle(0.0)
    for number, slot in enumerate(reversed(slots)):
        assert (end, links.remove_ending()) == (301.0 + number, [slot])
        end = links.settle(end)
    assert (end, links.remove_ending()) == (math.inf, [])


def test_rates_of_a_given_moment():
    assert max_min_rates([(0, 1), (0,), (1,)], [1.0, 2.0]) == pytest.approx([0.5, 0.5, 1.5])
    assert max_min_rates([], [1.0]) == []


@pytest.mark.parametrize(
    ("array", "place", "value"),
    [("_routes", (0, 0), 99), ("_crossing", 0, -5), ("_flows", 0, (1.0, 7, 0)), ("_left", slice(0, 1), 1 << 40)],
)
def test_a_state_that_leads_out_of_its_arrays_is_refused(array, place, value):
    links = SharedLinks([10.0, 10.0])
    first = links.add((0, 1), 100.0)
    links.settle(0.0)
    links.remove(first)
    getattr(links, array)[place] = value
    with pytest.raises(ValueError, match="indices of links are out of bounds"):
        pickle.loads(pickle.dumps(links))


@pytest.mark.parametrize("change", [{"_spare": 1 << 40}, {"_departures": -1}, {"_unused": [4096]}, {"_taken": 0}])
def test_counts_that_are_not_true_are_refused(change):
    links = SharedLinks([10.0, 10.0])
    links.add((0, 1), 100.0)
    links.settle(0.0)
    vars(links).update(change)
    with pytest.raises(ValueError, match="indices of links are out of bounds"):
        pickle.loads(pickle.dumps(links))


def test_arrays_of_other_lengths_are_refused():
    links = SharedLinks([10.0, 10.0])
    links.add((0, 1), 100.0)
    links._routes = links._routes[:1].copy()
    with pytest.raises(ValueError, match="routes of links are not"):
        pickle.loads(pickle.dumps(links))
