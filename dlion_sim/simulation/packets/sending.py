"""The next packet of a connection, and its lists of segments under way and lost."""

from __future__ import annotations

from numba import njit

from dlion_sim.simulation.packets import bounded
from dlion_sim.simulation.packets.carrying import new_packet, set_timer
from dlion_sim.simulation.packets.state import (
    BOUNDED,
    FINAL,
    LAST,
    LOST,
    NEVER,
    NONE,
    OUT,
    PFABRIC,
    PROTECTED,
    PUSH,
    RAW,
    WANTS_ROOM,
)
from dlion_sim.simulation.packets.views import connection_of, inlined, message_of, note, packet_of, slot_of, state_of

_LEAST_EARLY = 0.008
"""Seconds beyond round trips: two of Linux's ticks."""


@njit
def may_send(at, number):
    """Whether a connection has something to send, within its window."""
    connection = connection_of(at, number)
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
    """Seconds without acknowledgements after which all segments under way are considered lost."""
    if connection.kind == PFABRIC:
        return connection.timeout
    waited = connection.round_trip + max(connection.timeout, 4 * connection.deviation)
    return min(waited * (1 << min(connection.backoff, 16)), 120.0)


@inlined
def is_gap(at, connection):
    """Whether a segment under way was sent before an acknowledged one."""
    return connection.oldest != NONE and slot_of(at, connection, connection.oldest).order < connection.highest


@inlined
def start_timeout(at, number):
    """Start a connection's timeout.

    As in Linux (RFC 8985), it may be that of a gap (section 6.2), or of a probe of the last segment (7.2), unless that
    is the only one under way, which may be acknowledged late.
    """
    connection = connection_of(at, number)
    wait = time_to_wait(connection)
    if connection.linux:
        gap = is_gap(at, connection)
        is_end = connection.probe == NONE and connection.under_way > 1 and connection.lost_first == NONE
        connection.is_early = gap or is_end
        if connection.is_early:
            wait = min(wait, (0.25 if gap else 2.0) * connection.round_trip + _LEAST_EARLY)
    set_timer(at, number, state_of(at).now + wait)


@njit
def next_packet(at, number):
    """Make a connection's next packet; NONE if it may not send, or has no room for a segment."""
    state = state_of(at)
    connection = connection_of(at, number)
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
    packet = packet_of(at, made)
    packet.flags = PROTECTED if connection.protected else 0
    if connection.kind == RAW:
        _fill_raw(at, connection, packet)
        return made
    segment = connection.lost_first
    if segment == NONE:
        segment = connection.next
        connection.next += 1
        slot = slot_of(at, connection, segment)
        message = message_of(at, connection.sending)
        slot.message = connection.sending
        slot.size = min(message.left, connection.payload)
        slot.received = False
        message.left -= slot.size
        if message.left == 0:
            packet.flags |= FINAL
            connection.sending = message.next
    else:
        remove(at, connection, segment)
        connection.urgent = False
        slot = slot_of(at, connection, segment)
        message_of(at, slot.message).resent += slot.size
    append_out(at, connection, segment)
    packet.number, packet.order = segment, slot.order
    packet.message, packet.size = slot.message, slot.size + connection.header
    packet.left = message_of(at, slot.message).left
    if message_of(at, slot.message).end == segment + 1:
        packet.flags |= LAST
    if not may_send(at, number):
        packet.flags |= PUSH
    connection.active = state.now
    if connection.under_way == 1 and connection.deadline >= NEVER:
        start_timeout(at, number)
    return made


@inlined
def _fill_raw(at, connection, packet):
    message = message_of(at, connection.sending)
    size = min(message.left, connection.payload)
    message.left -= size
    packet.message, packet.size, packet.left = connection.sending, size + connection.header, message.left
    if message.left == 0:
        packet.flags |= FINAL
        connection.sending = message.next


@inlined
def append_out(at, connection, segment):
    """Append a segment to those under way, in the order of sending."""
    slot = slot_of(at, connection, segment)
    slot.state, slot.order = OUT, connection.order
    slot.previous, slot.next = connection.latest, NONE
    if connection.latest == NONE:
        connection.oldest = segment
    else:
        slot_of(at, connection, connection.latest).next = segment
    connection.latest = segment
    connection.order += 1
    connection.under_way += 1


@inlined
def append_lost(at, connection, segment):
    """Append a segment to those to send again."""
    slot = slot_of(at, connection, segment)
    slot.state = LOST
    slot.previous, slot.next = connection.lost_last, NONE
    if connection.lost_last == NONE:
        connection.lost_first = segment
    else:
        slot_of(at, connection, connection.lost_last).next = segment
    connection.lost_last = segment


@inlined
def remove(at, connection, segment):
    """Remove a segment from its list."""
    slot = slot_of(at, connection, segment)
    before, after = slot.previous, slot.next
    is_out = slot.state == OUT
    if before != NONE:
        slot_of(at, connection, before).next = after
    elif is_out:
        connection.oldest = after
    else:
        connection.lost_first = after
    if after != NONE:
        slot_of(at, connection, after).previous = before
    elif is_out:
        connection.latest = before
    else:
        connection.lost_last = before
    if is_out:
        connection.under_way -= 1
