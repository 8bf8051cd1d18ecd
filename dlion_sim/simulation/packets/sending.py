"""What a connection sends next, when its host's NIC has room for a packet."""

from __future__ import annotations

from numba import njit

from dlion_sim.simulation.packets import bounded
from dlion_sim.simulation.packets.carrying import new_packet, set_timer
from dlion_sim.simulation.packets.segments import append_out, remove
from dlion_sim.simulation.packets.state import (
    BOUNDED,
    FINAL,
    LAST,
    NEVER,
    NONE,
    PFABRIC,
    PROTECTED,
    PUSH,
    RAW,
    WANTS_ROOM,
)
from dlion_sim.simulation.packets.views import (
    connections_of,
    inlined,
    messages_of,
    note,
    packets_of,
    slot_of,
    slots_of,
    state_of,
)

_LEAST_EARLY = 0.008
"""Seconds beyond round trips: two of Linux's ticks."""


@njit
def may_send(at, number):
    """Whether a connection has something to send, and a window for it."""
    connection = connections_of(at)[number]
    if connection.kind == RAW:
        return connection.sending != NONE
    if connection.kind == BOUNDED:
        return bounded.may_send(at, connection)
    has_room = connection.under_way < int(connection.window)
    if connection.lost_first != NONE:
        return has_room or connection.urgent
    return has_room and connection.next < min(connection.end, connection.acknowledged + connection.most)


@inlined
def time_to_wait(connection):
    """Seconds without news after which all that is under way is taken for lost."""
    if connection.kind == PFABRIC:
        return connection.timeout
    waited = connection.round_trip + max(connection.timeout, 4 * connection.deviation)
    return min(waited * (1 << min(connection.backoff, 16)), 120.0)


@inlined
def is_gap(at, connection):
    """Whether something that is under way was sent before what is known to be there."""
    slots = slots_of(at)
    return connection.oldest != NONE and slots[slot_of(connection, connection.oldest)].order < connection.highest


@inlined
def wait_for_news(at, number):
    """Have a connection's timeout come if nothing is heard until then.

    Where that is as with Linux (RFC 8985), it is when a gap is not reordering (section 6.2), or the end of what it
    has sent is to be probed (7.2), unless that is a single segment, which may be acknowledged late.
    """
    connection = connections_of(at)[number]
    wait = time_to_wait(connection)
    if connection.linux:
        gap = is_gap(at, connection)
        is_end = connection.probe == NONE and connection.under_way > 1 and connection.lost_first == NONE
        connection.is_early = gap or is_end
        if connection.is_early:
            wait = min(wait, (0.25 if gap else 2.0) * connection.round_trip + _LEAST_EARLY)
    set_timer(at, number, state_of(at)[0].now + wait)


@njit
def next_packet(at, number):
    """Make a connection's next packet; NONE where it may send none any more, or has no room to keep account of it."""
    state = state_of(at)[0]
    connection = connections_of(at)[number]
    if not may_send(at, number):
        return NONE
    if connection.kind == BOUNDED:
        return bounded.next_packet(at, number)
    if (
        connection.kind != RAW
        and connection.lost_first == NONE
        and connection.next - connection.acknowledged >= connection.room
    ):
        note(at, WANTS_ROOM, number)
        return NONE
    made = new_packet(at, number)
    packet = packets_of(at)[made]
    packet.flags = PROTECTED if connection.protected else 0
    if connection.kind == RAW:
        _fill_raw(at, connection, packet)
        return made
    slots, messages = slots_of(at), messages_of(at)
    segment = connection.lost_first
    if segment == NONE:
        segment = connection.next
        connection.next += 1
        slot = slots[slot_of(connection, segment)]
        message = messages[connection.sending]
        slot.message = connection.sending
        slot.size = min(message.left, connection.payload)
        slot.received = False
        message.left -= slot.size
        if message.left == 0:
            packet.flags |= FINAL
            connection.sending = message.next
    else:
        remove(connection, slots, segment)
        connection.urgent = False
        slot = slots[slot_of(connection, segment)]
        messages[slot.message].resent += slot.size
    append_out(connection, slots, segment)
    packet.number, packet.order = segment, slot.order
    packet.message, packet.size = slot.message, slot.size + connection.header
    packet.left = messages[slot.message].left
    if messages[slot.message].end == segment + 1:
        packet.flags |= LAST
    if not may_send(at, number):
        packet.flags |= PUSH
    connection.active = state.now
    if connection.under_way == 1 and connection.deadline >= NEVER:
        wait_for_news(at, number)
    return made


@inlined
def _fill_raw(at, connection, packet):
    message = messages_of(at)[connection.sending]
    size = min(message.left, connection.payload)
    message.left -= size
    packet.message, packet.size, packet.left = connection.sending, size + connection.header, message.left
    if message.left == 0:
        packet.flags |= FINAL
        connection.sending = message.next
