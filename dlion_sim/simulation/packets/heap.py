"""The queue of events: a binary heap of (time, sequence, of), the least first."""

from __future__ import annotations

from numba import njit

from dlion_sim.simulation.packets.views import entry_of, inlined, state_of


@inlined
def _is_before(time, sequence, other):
    return time < other.time or (time == other.time and sequence < other.sequence)


@inlined
def _set(entry, time, sequence, of):
    entry.time, entry.sequence, entry.of = time, sequence, of


@njit
def push(at, time, of):
    """Schedule `of` at a time, after all others of that time."""
    state = state_of(at)
    sequence = state.scheduled
    state.scheduled += 1
    place = state.entries
    state.entries += 1
    while place:
        above = (place - 1) >> 1
        parent = entry_of(at, above)
        if parent.time <= time:
            break
        _set(entry_of(at, place), parent.time, parent.sequence, parent.of)
        place = above
    _set(entry_of(at, place), time, sequence, of)


@njit
def _sink(at, time, sequence, of):
    """Replace the first entry, and restore the order."""
    count = state_of(at).entries
    place = 0
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        child = entry_of(at, below)
        if below + 1 < count:
            right = entry_of(at, below + 1)
            if _is_before(right.time, right.sequence, child):
                below, child = below + 1, right
        if _is_before(time, sequence, child):
            break
        _set(entry_of(at, place), child.time, child.sequence, child.of)
        place = below
    _set(entry_of(at, place), time, sequence, of)


@njit
def drop_first(at):
    """Remove the first entry."""
    state = state_of(at)
    state.entries -= 1
    if state.entries:
        last = entry_of(at, state.entries)
        _sink(at, last.time, last.sequence, last.of)


@njit
def renew_first(at, time):
    """Reschedule the first entry."""
    state = state_of(at)
    sequence = state.scheduled
    state.scheduled += 1
    _sink(at, time, sequence, entry_of(at, 0).of)
