"""The flow network against closed forms, and its invariants on random traffic."""

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.flows import FlowNetwork
from tests.simulation.agendas import finish

EXACT = 1e-9


def ends(capacities, flows, changes=(), cuts=()):
    """The end of each flow (start, route, size), while `changes` (time, link, capacity) and `cuts` (time, flow) happen.

    A flow that has not started or has ended is not cut.
    """
    event_queue = EventQueue()
    network = FlowNetwork(event_queue, capacities)
    times = [math.inf] * len(flows)
    slots = {}

    def start(number, route, size):
        slots[number] = network.start(route, size, partial(end, number))

    def end(number):
        del slots[number]
        times[number] = event_queue.now

    def cut(number):
        if number in slots:
            network.cut(slots.pop(number))

    for number, (begin, route, size) in enumerate(flows):
        event_queue.after(begin, partial(start, number, route, size))
    for time, link, capacity in changes:
        event_queue.after(time, partial(network.resize, link, capacity))
    for time, number in cuts:
        event_queue.after(time, partial(cut, number))
    finish(event_queue)
    return times


NEVER = math.inf
CLOSED_FORMS = {
    "one flow": ([10.0], [(0, (0,), 25)], (), (), [2.5]),
    # Both at 5: the first is done at 2; the second has 20 left then, at 10.
    "two flows on one NIC": ([10.0], [(0, (0,), 10), (0, (0,), 30)], (), (), [2.0, 4.0]),
    # NIC 10, path 2: the flow over the path gets 2, the other 8.
    "a path narrower than the NIC": ([10.0, 2.0], [(0, (0, 1), 10), (0, (0,), 16)], (), (), [5.0, 2.0]),
    # 10 until t=1, then 4: 30 bytes = 10 + 4 * 5.
    "a capacity that changes": ([10.0], [(0, (0,), 30)], [(1.0, 0, 4.0)], (), [6.0]),
    "an outage": ([10.0], [(0, (0,), 20)], [(1.0, 0, 0.0), (6.0, 0, 10.0)], (), [7.0]),
    "an outage for good": ([10.0], [(0, (0,), 20)], [(1.0, 0, 0.0)], (), [NEVER]),
    # Alone until 1 (10 bytes), then 5 each: the first has 10 left, until 3; the second then has 10 left at 10.
    "a later flow": ([10.0], [(0, (0,), 20), (1, (0,), 20)], (), (), [3.0, 4.0]),
    # Both at 5 until 1: then the other one has 15 left, at 10.
    "a flow that is cut": ([10.0], [(0, (0,), 20), (0, (0,), 20)], (), [(1.0, 0)], [NEVER, 2.5]),
    # Alone until 1, then with the third one: the first has 10 left at 5.
    "a flow that is cut as it starts": (
        *([10.0], [(0, (0,), 20), (1, (0,), 20), (1, (0,), 20)], (), [(1.0, 1)]),
        [3.0, NEVER, 4.0],
    ),
}


@pytest.mark.parametrize("case", CLOSED_FORMS)
def test_flows_end_as_computed_by_hand(case):
    *given, expected = CLOSED_FORMS[case]
    assert ends(*given) == pytest.approx(expected, abs=EXACT)


@pytest.mark.parametrize("before", [True, False])
def test_of_flows_that_end_together_one_may_be_cut_in_that_instant(before):
    """Before or after its end is reported; the others end at that time, and the link is free."""
    event_queue, told = EventQueue(), []
    network = FlowNetwork(event_queue, [10.0])
    slots = [network.start((0,), 20, partial(told.append, number)) for number in range(2)]
    cut = partial(network.cut, slots[0])
    event_queue.after(4.0, cut) if before else event_queue.after(
        3.0, partial(event_queue.after, 1.0, lambda: told or cut())
    )
    finish(event_queue)
    assert told == ([1] if before else [0, 1])
    assert event_queue.now == 4.0
    network.start((0,), 20, partial(told.append, "next"))
    finish(event_queue)
    assert event_queue.now == pytest.approx(6.0)


@given(
    capacities=st.lists(st.floats(1, 1e3), min_size=2, max_size=3),
    flows=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2), st.integers(1, 1000)), min_size=1, max_size=12),
    cuts=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 11)), max_size=8),
)
def test_a_link_with_flows_is_full_whatever_is_cut(capacities, flows, cuts):
    """It carries all of those that end, and of those that are cut no more than they are."""
    flows = [(begin, (link % len(capacities),), size) for begin, link, size in flows]
    possible = sorted(cuts, reverse=True)
    cut = {number: time for time, number in possible if number < len(flows) and flows[number][0] <= time}
    times = ends(capacities, flows, cuts=[(time, number) for number, time in cut.items()])
    for number, end in enumerate(times):
        assert end < math.inf or number in cut
        assert number not in cut or end == math.inf or end <= cut[number] * (1 + EXACT)
    for link, capacity in enumerate(capacities):
        busy = [
            (flow[0], end if end < math.inf else cut[number])
            for number, (flow, end) in enumerate(zip(flows, times, strict=True))
            if flow[1] == (link,)
        ]
        whole = sum(flow[2] for flow, end in zip(flows, times, strict=True) if flow[1] == (link,) and end < math.inf)
        every = sum(flow[2] for flow in flows if flow[1] == (link,))
        carried = capacity * _covered(busy)  # A link with a flow is full.
        assert whole * (1 - 1e-6) <= carried <= every * (1 + 1e-6)


def _covered(spans):
    """Seconds in any of them."""
    total, until = 0.0, 0.0
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


@given(
    capacities=st.lists(st.floats(1, 1e3), min_size=2, max_size=5),
    flows=st.lists(
        st.tuples(
            st.floats(0, 10), st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True), st.floats(1, 1e4)
        ),
        max_size=12,
    ),
    changes=st.lists(st.tuples(st.floats(0, 50), st.integers(0, 4), st.floats(1, 1e3)), max_size=6),
)
def test_bytes_are_conserved(capacities, flows, changes):
    """Every flow ends, no sooner than alone at the best capacities, and no link carries more than it could."""
    links = len(capacities)
    flows = [(begin, tuple({link % links for link in route}), size) for begin, route, size in flows]
    changes = sorted((time, link % links, capacity) for time, link, capacity in changes)
    times = ends(capacities, flows, changes)
    best = [
        max([capacity, *(c for _, changed, c in changes if changed == link)])
        for link, capacity in enumerate(capacities)
    ]
    for end, (begin, route, size) in zip(times, flows, strict=True):
        assert begin + size / min(best[link] for link in route) <= end * (1 + EXACT) < math.inf
    for link in range(links):
        carried = sum(size for _, route, size in flows if link in route)
        last = max((end for end, (_, route, _) in zip(times, flows, strict=True) if link in route), default=0.0)
        steps = [(0.0, capacities[link]), *((time, c) for time, changed, c in changes if changed == link)]
        room = sum(
            capacity * max(0.0, min(until, last) - since)
            for (since, capacity), until in zip(steps, [time for time, _ in steps[1:]] + [math.inf], strict=True)
        )
        assert carried <= room * (1 + 1e-6) + 1e-6
