"""Incremental progressive filling: the compiled part of `sharing`, whose docstring explains it.

In a pass, a *changed* link is one whose level may differ from before. Each has up to two events, and each unchanged
link that holds flows of a changed one has one. They are processed in order of their levels:

- a changed link FILLS up: the flows on it that still rise are held there;
- a changed link does not fill where it did before, and its flows PASS that level: their other links change too;
- an unchanged link HOLDS its flows at its level as before.

Flows may have weights: at a level each has its weight times that as its rate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import carray, njit, types  # type: ignore[attr-defined]
from numba.extending import overload

from dlion_sim.addresses import pointer

NOWHERE, GONE = -1, -2
LONGEST_ROUTE = 4
"""Links that a flow can cross."""
ARRIVAL = 2 + 2 * LONGEST_ROUTE
"""The length of a row of a new flow."""
MOST_FILLINGS = 4
"""The most fillings in a settlement: changes of cross-traffic shrink some fifty times from one to the next."""
COUNTERS = 2
_PASS, _TOUCHED = range(COUNTERS)
BLOCK = 64
"""Flows per block, whose earliest end is kept, so that the first end is found without a scan of all flows."""

LINK = np.dtype(
    [
        ("capacity", np.float64),  # bytes per second
        ("level", np.float64),  # infinite if it does not fill
        ("returning", np.float64),  # rates of all flows whose cross-traffic it carries
        ("charged", np.float64),  # of its capacity, what is taken to go to cross-traffic
        ("free", np.float64),  # capacity left by flows of known rate, in a pass that changes it
        ("rising", np.float64),  # weights of its flows of yet unknown rate, in a pass that changes it
        ("first", np.int32),  # where in `crossing` its flows are
        ("crossed", np.int32),  # by so many flows
        ("room", np.int32),  # for so many of them there
        ("changed", np.int32),  # the last pass in which it counted as changed
        ("filled", np.int32),  # the last pass that found its level
        ("watched", np.int32),  # the last pass that waited for it to hold its flows as before
        ("kept", np.int32),  # the last pass in which it did so
        ("touched", np.int32),  # the last pass that changed what it carries of cross-traffic
    ]
)
FLOW = np.dtype(
    [
        ("rate", np.float64),  # bytes per second
        ("bottleneck", np.int32),  # the link that holds it, NOWHERE while it is new, GONE when it has left
        ("settled", np.int32),  # the last pass that found its rate
    ]
)
# Apart from the rest, which each pass reads of most flows, so that that stays near the core.
PROGRESS = np.dtype([("remaining", np.float64), ("since", np.float64)])  # bytes left to send at `since` (seconds)

_UNNOTICED = 1e-3
"""The part of a capacity below which a change of cross-traffic is ignored, or else every change would reach all."""
_MOST_CHARGED = 0.5
"""The largest part of a capacity for cross-traffic: TCP would send fewer acknowledgements."""
_INSTANT = 1e-12
"""Ends closer than this, relative to the time, are one instant: equal flows that differ by rounding end together."""
_SAME = 1e-12
"""Levels closer than this, relatively, are equal: rounding is no change."""
_BELOW = 1 - 1e-11
"""Values below the present level times this are processed, also with rounding of tied levels."""
_TINY = 1e-300
_FILLS, _PASSES, _HOLDS = 0, 1, 2

_inlined = njit(cache=True, forceinline=True)
"""As a `_Net` is passed by value, calls would be expensive."""


class _Net(NamedTuple):
    """The whole network, with the arrays of a pass."""

    links: np.ndarray  # LINK [L]
    flows: np.ndarray  # FLOW [F]
    progress: np.ndarray  # PROGRESS [F]
    routes: np.ndarray  # [F, LONGEST_ROUTE]: links, then NOWHERE
    returns: np.ndarray  # [F, LONGEST_ROUTE]: the links of the way back, then NOWHERE
    crossing: np.ndarray  # the flows that cross each link, in the order of arrival: see `LINK`
    ends: np.ndarray  # [F] seconds, infinite for no flow
    earliest: np.ndarray  # [F / BLOCK] the least of each block of `ends`, minus infinity if it is to be looked up
    ending: np.ndarray  # [F] the slots of flows that end next
    heap: np.ndarray  # [3 L, 2]: levels, and what comes then: its kind + 3 * its link
    changed: np.ndarray  # [L] the changed links, in the order in which they changed
    touched: np.ndarray  # [L] the links whose cross-traffic changed
    left: np.ndarray  # [F] the slots of removed flows
    arrived: np.ndarray  # [, ARRIVAL] flows that have come: slot, bytes to send, links of the route and of the way back
    counters: np.ndarray  # [COUNTERS] _PASS and _TOUCHED: the present pass's number, and how many are `touched`
    now: float  # seconds
    cross_traffic: float  # the share of a flow's rate that goes back
    weights: Any  # [F] whole numbers, so that sums are exact, or None where all are 1


@_inlined
def _net(located, now, cross_traffic, weights):
    """The network whose arrays `locate` has located, in the order of its fields."""
    return _Net(
        carray(pointer(located[0, 0]), located[0, 1], LINK),
        carray(pointer(located[1, 0]), located[1, 1], FLOW),
        carray(pointer(located[2, 0]), located[2, 1], PROGRESS),
        carray(pointer(located[3, 0]), (located[3, 1], LONGEST_ROUTE), np.int32),
        carray(pointer(located[4, 0]), (located[4, 1], LONGEST_ROUTE), np.int32),
        carray(pointer(located[5, 0]), located[5, 1], np.int32),
        carray(pointer(located[6, 0]), located[6, 1], np.float64),
        carray(pointer(located[7, 0]), located[7, 1], np.float64),
        carray(pointer(located[8, 0]), located[8, 1], np.int64),
        carray(pointer(located[9, 0]), (located[9, 1], 2), np.float64),
        carray(pointer(located[10, 0]), located[10, 1], np.int64),
        carray(pointer(located[11, 0]), located[11, 1], np.int64),
        carray(pointer(located[12, 0]), located[12, 1], np.int64),
        carray(pointer(located[13, 0]), (located[13, 1], ARRIVAL), np.float64),
        carray(pointer(located[14, 0]), located[14, 1], np.int64),
        now,
        cross_traffic,
        weights,
    )


def _weight(weights, slot):
    """The rate of a flow at level 1: which links that are full hold it at."""


@overload(_weight, inline="always")
def _weight_of(weights, slot):
    """For None a constant, so that nothing is computed with it."""
    if isinstance(weights, types.NoneType):
        return lambda weights, slot: 1.0
    return lambda weights, slot: weights[slot]


@njit(cache=True)
def settle(located, now, departures, ended, arrivals, resized, cross_traffic):
    """As `settle_weighted`, for flows of equal weights; an argument None would make the call slower."""
    return _settle(located, now, departures, ended, arrivals, resized, cross_traffic, None)


@njit(cache=True)
def settle_weighted(located, now, departures, ended, arrivals, resized, cross_traffic, weights):
    """Apply all changes, and repeat progressive filling from the lowest level that they affect.

    `located` is the result of `locate`. The first `departures` flows of `left` and the first `ended` of `ending` are
    removed, the first `arrivals` of `arrived` are added; `resized` [m, 2] are links and their new capacities.
    `cross_traffic` is the share of a flow's rate on its return route, `weights` [F] are those of flows. Returns the
    next end and the number of flows that end then, whose slots are in `ending`, in order.
    """
    return _settle(located, now, departures, ended, arrivals, resized, cross_traffic, weights)


@_inlined
def _settle(located, now, departures, ended, arrivals, resized, cross_traffic, weights):
    net = _net(located, now, cross_traffic, weights)
    arrived = net.arrived
    links, flows, progress, routes, returns, crossing = net[:6]
    ends, earliest, changed, counters = net.ends, net.earliest, net.changed, net.counters
    level = np.inf
    count = 0
    _begin(net)
    for place in range(departures + ended):
        slot = net.left[place] if place < departures else net.ending[place - departures]
        _load_return(net, slot, -flows[slot].rate)
        ends[slot] = np.inf
        earliest[slot // BLOCK] = -np.inf
        level = min(level, flows[slot].rate / _weight(net.weights, slot))
        flows[slot].bottleneck = GONE
        for step in range(LONGEST_ROUTE):
            link = routes[slot, step]
            if link == NOWHERE:
                break
            count = _note(net, count, link)
    for place in range(count):
        _drop_gone(net, changed[place])
    for row in range(arrivals):
        slot = int(arrived[row, 0])
        flow = flows[slot]
        flow.rate, flow.bottleneck, flow.settled = 0.0, NOWHERE, 0
        progress[slot].remaining, progress[slot].since = arrived[row, 1], now
        for place in range(LONGEST_ROUTE):
            routes[slot, place] = int(arrived[row, 2 + place])
            returns[slot, place] = int(arrived[row, 2 + LONGEST_ROUTE + place])
        for place in range(LONGEST_ROUTE):
            link = routes[slot, place]
            if link == NOWHERE:
                break
            crossing[links[link].first + links[link].crossed] = slot
            links[link].crossed += 1
            count = _note(net, count, link)
    for row in range(len(resized)):
        link = int(resized[row, 0])
        level = min(level, links[link].level)
        links[link].capacity = resized[row, 1]
        links[link].charged = min(links[link].charged, _MOST_CHARGED * links[link].capacity)
        _touch(net, link)
        count = _note(net, count, link)
    if arrivals or len(resized):
        for place in range(count):
            level = min(level, _equal_part(net, changed[place]))  # no link fills below that
    _fill(net, count, level)
    for _ in range(1, MOST_FILLINGS):
        if not counters[_TOUCHED]:
            break
        count, level = _charge(net)
        _fill(net, count, level)
    end = _next_end(ends, earliest)
    return end, _find_ending(net, end * (1 + _INSTANT))


@_inlined
def _begin(net):
    """A pass."""
    net.counters[_PASS] += 1
    net.counters[_TOUCHED] = 0


@_inlined
def _charge(net):
    """Take cross-traffic off the capacities where it has changed; how many links that changes, and from what level."""
    links, count, level = net.links, 0, np.inf
    touched = net.counters[_TOUCHED]
    _begin(net)
    for place in range(touched):
        link = links[net.touched[place]]
        load = min(net.cross_traffic * link.returning, _MOST_CHARGED * link.capacity)
        if abs(load - link.charged) > _UNNOTICED * link.capacity:
            level = min(level, link.level)
            link.charged = load
            count = _note(net, count, net.touched[place])
    for place in range(count):
        level = min(level, _equal_part(net, net.changed[place]))
    return count, level


@_inlined
def _load_return(net, slot, change):
    """A flow's rate changes: so does what goes back."""
    if net.cross_traffic == 0:
        return
    for place in range(LONGEST_ROUTE):
        link = net.returns[slot, place]
        if link == NOWHERE:
            break
        net.links[link].returning += change
        _touch(net, link)


@_inlined
def _touch(net, link):
    """Note that the cross-traffic of `link` may have to be charged anew."""
    if net.links[link].touched != net.counters[_PASS]:
        net.links[link].touched = net.counters[_PASS]
        net.touched[net.counters[_TOUCHED]] = link
        net.counters[_TOUCHED] += 1


@njit(cache=True)
def _fill(net, count, level):
    """Progressive filling from `level` on, on the first `count` changed links and all that come to change."""
    links, flows, crossing, routes, heap = net.links, net.flows, net.crossing, net.routes, net.heap
    number = net.counters[_PASS]
    waiting = 0
    for place in range(count):
        waiting = _take_up(net, waiting, net.changed[place], level)
    while waiting:
        key, item, waiting = _pop(heap, waiting)
        kind, link = item % 3, item // 3
        level = max(level, links[link].level if kind == _PASSES else key)
        if kind == _FILLS:
            if links[link].rising == 0:
                continue
            share = max(0.0, links[link].free / links[link].rising)
            if share > level * (1 + _SAME):
                waiting = _push(heap, waiting, share, item)  # others of its flows have been held at less since
                continue
            links[link].filled = number
            links[link].level = level
        elif kind == _PASSES:
            if links[link].filled == number:
                continue
        else:
            if links[link].changed == number:
                continue
            links[link].kept = number
        first = links[link].first
        for place in range(first + links[link].crossed - 1, first - 1, -1):
            slot = crossing[place]
            flow = flows[slot]
            if flow.settled == number:
                continue
            if kind == _FILLS:
                held = flow.bottleneck
                rate = level * _weight(net.weights, slot)
                if held != NOWHERE and links[held].changed != number and flow.rate < rate * _BELOW:
                    continue  # held elsewhere, below, as before
                moved = abs(flow.rate - rate) > _SAME * rate
                if moved:
                    _change_rate(net, slot, rate)
                flow.rate = rate  # exactly: a link's flows are recognized by it
                flow.bottleneck = link
            elif flow.bottleneck != link:
                continue
            else:
                moved = kind == _PASSES
            if kind != _PASSES:
                flow.settled = number
            for step in range(LONGEST_ROUTE):
                other = routes[slot, step]
                if other == NOWHERE:
                    break
                if other == link or links[other].filled == number:
                    continue
                if links[other].changed == number:
                    if kind != _PASSES:
                        links[other].free -= flow.rate
                        links[other].rising -= _weight(net.weights, slot)
                elif moved:
                    count = _note(net, count, other)
                    waiting = _take_up(net, waiting, other, level)
    for place in range(count):
        link = net.changed[place]
        if links[link].filled != number and links[link].kept != number:
            links[link].level = np.inf


@_inlined
def _take_up(net, waiting, link, level):
    """Count a changed link's flows as they are at `level`, and schedule it and them."""
    links, flows, crossing, heap = net.links, net.flows, net.crossing, net.heap
    number = net.counters[_PASS]
    free, rising = links[link].capacity - links[link].charged, 0.0
    first = links[link].first
    for place in range(first + links[link].crossed - 1, first - 1, -1):
        flow, weight = flows[crossing[place]], _weight(net.weights, crossing[place])
        held = flow.bottleneck
        if flow.settled == number:
            free -= flow.rate
        elif held == NOWHERE or links[held].changed == number:
            rising += weight
        elif flow.rate < level * weight * _BELOW:
            free -= flow.rate
        else:
            rising += weight
            if links[held].watched != number:
                links[held].watched = number
                waiting = _push(heap, waiting, max(level, links[held].level), _HOLDS + 3 * held)
    links[link].free, links[link].rising = free, rising
    if rising:
        waiting = _push(heap, waiting, max(level, free / rising), _FILLS + 3 * link)
        if links[link].level < np.inf:
            # After whatever fills at the same level.
            key = max(level, links[link].level) * (1 + 2 * _SAME) + _TINY
            waiting = _push(heap, waiting, key, _PASSES + 3 * link)
    return waiting


@_inlined
def _change_rate(net, slot, rate):
    flow, sent = net.flows[slot], net.progress[slot]
    sent.remaining = max(0.0, sent.remaining - (net.now - sent.since) * flow.rate)
    sent.since = net.now
    _load_return(net, slot, rate - flow.rate)
    flow.rate = rate
    net.ends[slot] = net.now + sent.remaining / rate if rate > 0 else np.inf
    net.earliest[slot // BLOCK] = -np.inf


@_inlined
def _note(net, count, link):
    """Count `link` as changed, and return how many are."""
    if net.links[link].changed != net.counters[_PASS]:
        net.links[link].changed = net.counters[_PASS]
        net.changed[count] = link
        count += 1
    return count


@_inlined
def _equal_part(net, link):
    """The level of a link that fills before all others."""
    link = net.links[link]
    return (link.capacity - link.charged) / _crossing_weight(net, net.weights, link) if link.crossed else np.inf


def _crossing_weight(net, weights, link):
    """Of all flows that cross a link."""


@overload(_crossing_weight)
def _crossing_weight_of(net, weights, link):
    if isinstance(weights, types.NoneType):
        return lambda net, weights, link: link.crossed
    return lambda net, weights, link: weights[net.crossing[link.first : link.first + link.crossed]].sum()


@_inlined
def _drop_gone(net, link):
    """Let the flows that have left cross `link` no longer."""
    link, kept = net.links[link], 0
    for place in range(link.first, link.first + link.crossed):
        slot = net.crossing[place]
        if net.flows[slot].bottleneck != GONE:
            net.crossing[link.first + kept] = slot
            kept += 1
    link.crossed = kept


@njit(cache=True, fastmath={"nnan", "nsz", "reassoc"})  # a least of many is exact in any order
def _next_end(ends, earliest):
    first = np.inf
    for block in range(len(earliest)):
        if earliest[block] == -np.inf:
            end = np.inf
            for slot in range(block * BLOCK, (block + 1) * BLOCK):
                end = min(end, ends[slot])
            earliest[block] = end
        first = min(first, earliest[block])
    return first


@_inlined
def _find_ending(net, until):
    """Put the slots of the flows that end by `until` into `ending`, in order; how many they are."""
    count = 0
    if until < np.inf:
        for block in range(len(net.earliest)):
            if net.earliest[block] <= until:
                for slot in range(block * BLOCK, (block + 1) * BLOCK):
                    if net.ends[slot] <= until:
                        net.ending[count] = slot
                        count += 1
    return count


# A binary heap of (key, item).


@_inlined
def _push(heap, size, key, item):
    place = size
    while place > 0 and heap[(place - 1) // 2, 0] > key:
        heap[place, 0], heap[place, 1] = heap[(place - 1) // 2, 0], heap[(place - 1) // 2, 1]
        place = (place - 1) // 2
    heap[place, 0], heap[place, 1] = key, item
    return size + 1


@_inlined
def _pop(heap, size):
    key, item = heap[0, 0], heap[0, 1]
    size -= 1
    last, which = heap[size, 0], heap[size, 1]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and heap[below + 1, 0] < heap[below, 0]:
            below += 1
        if heap[below, 0] >= last:
            break
        heap[place, 0], heap[place, 1] = heap[below, 0], heap[below, 1]
        place = below
    heap[place, 0], heap[place, 1] = last, which
    return key, int(item), size
