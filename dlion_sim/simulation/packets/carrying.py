"""The queue of events, a binary heap of (time, sequence, of) with the least first; packets and timers."""

from __future__ import annotations

from numba import njit

from dlion_sim.simulation.packets.state import KINDS, REPLY, TIMER_ENDS
from dlion_sim.simulation.packets.views import connections_of, heap_of, inlined, packets_of, state_of


@inlined
def _is_before(one, other):
    return one.time < other.time or (one.time == other.time and one.sequence < other.sequence)


@inlined
def _set(entry, time, sequence, of):
    entry.time, entry.sequence, entry.of = time, sequence, of


@njit
def push(at, time, of):
    """Schedule `of` at a time, after all others of that time."""
    state, heap = state_of(at)[0], heap_of(at)
    sequence = state.scheduled
    state.scheduled += 1
    place = state.entries
    state.entries += 1
    while place:
        above = (place - 1) >> 1
        parent = heap[above]
        if parent.time <= time:
            break
        _set(heap[place], parent.time, parent.sequence, parent.of)
        place = above
    _set(heap[place], time, sequence, of)


@njit
def _sink(at, time, sequence, of):
    """Replace the first entry, and restore the order."""
    state, heap = state_of(at)[0], heap_of(at)
    count = state.entries
    place = 0
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        if below + 1 < count and _is_before(heap[below + 1], heap[below]):
            below += 1
        child = heap[below]
        if time < child.time or (time == child.time and sequence < child.sequence):
            break
        _set(heap[place], child.time, child.sequence, child.of)
        place = below
    _set(heap[place], time, sequence, of)


@njit
def drop_first(at):
    """Remove the first entry."""
    state, heap = state_of(at)[0], heap_of(at)
    state.entries -= 1
    if state.entries:
        last = heap[state.entries]
        _sink(at, last.time, last.sequence, last.of)


@njit
def renew_first(at, time):
    """Reschedule the first entry."""
    state, heap = state_of(at)[0], heap_of(at)
    sequence = state.scheduled
    state.scheduled += 1
    _sink(at, time, sequence, heap[0].of)


@inlined
def new_packet(at, number):
    """A new packet for a connection to send now."""
    made = _take(at)
    state, packet, connection = state_of(at)[0], packets_of(at)[made], connections_of(at)[number]
    turn = connection.turn
    if state.spray and connection.paths > 1:
        connection.turn = turn + 1 if turn + 1 < connection.paths else 0
    packet.path, packet.hop = connection.path + turn, 0
    packet.connection, packet.priority = number, connection.priority
    packet.sent = state.now
    return made


@inlined
def new_reply(at, number):
    """A new packet for a connection's receiver to send back."""
    made = _take(at)
    state, packet, connection = state_of(at)[0], packets_of(at)[made], connections_of(at)[number]
    turn = connection.back_turn
    if state.spray and connection.backs > 1:
        connection.back_turn = turn + 1 if turn + 1 < connection.backs else 0
    packet.path, packet.hop = connection.back + turn, 0
    packet.connection, packet.priority = number, 0
    packet.flags, packet.left = REPLY, 0
    return made


@inlined
def end_packet(at, number):
    """Free a packet."""
    state = state_of(at)[0]
    packets_of(at)[number].next = state.next_free
    state.next_free = number
    state.free += 1
    state.ended += 1


@inlined
def set_timer(at, number, deadline):
    """Set a connection's timer."""
    connection = connections_of(at)[number]
    connection.deadline = deadline
    if deadline < connection.timer:
        connection.timer = deadline
        push(at, deadline, number * KINDS + TIMER_ENDS)


@inlined
def _take(at):
    state = state_of(at)[0]
    number = state.next_free
    state.next_free = packets_of(at)[number].next
    state.free -= 1
    state.made += 1
    return number
