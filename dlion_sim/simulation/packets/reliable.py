"""The reliable endpoint: acknowledgements, losses, DCTCP's window (Alizadeh et al., SIGCOMM 2010), timeouts.

A transmission is considered lost if a number of later ones were acknowledged (as in QUIC, RFC 9002), three at first; if
it was only late, the number grows and the window is restored. Without an acknowledgement for a round trip and the least
timeout, all segments under way are considered lost.

As in Linux, a transmission is lost a quarter of a round trip after a later one was acknowledged, and after two round
trips without acknowledgements the last segment is sent again: once it is acknowledged, earlier ones are either
acknowledged or lost (RACK-TLP, RFC 8985). The first lost segment is sent again at once, regardless of the window (RFC
6675). The window counts whole segments, and grows only by those acknowledged in order, which decides what is lost.

Not modelled: handshakes, pacing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dlion_sim.simulation.packets.carrying import new_reply, set_timer
from dlion_sim.simulation.packets.ports import enqueue, wake
from dlion_sim.simulation.packets.sending import append_lost, is_gap, remove, start_timeout, time_to_wait
from dlion_sim.simulation.packets.state import (
    ACKNOWLEDGED,
    ACKNOWLEDGEMENT,
    DELIVERED,
    KNOWN,
    LAST,
    LOST,
    MARKED,
    NEVER,
    NONE,
    PFABRIC,
    PROTECTED,
    PUSH,
    RELIABLE,
    REPLY,
)
from dlion_sim.simulation.packets.views import (
    connection_of,
    inlined,
    message_of,
    note,
    packet_of,
    port_on,
    slot_of,
    state_of,
)

_GAIN = 1 / 16
"""The gain of DCTCP's mean."""
_LEAST_WINDOW = 2.0
_MOST_REORDERING = 300
_ALMOST = 1 - 1e-6
"""A whole segment, as a sum of fractions with rounding errors."""
_NEARLY = 0.95
"""The part of a message whose acknowledgement live nodes wait for to measure its rate."""


@njit
def receive(at, made):
    """A packet has arrived: acknowledge every second one, and out-of-order ones at once."""
    packet = packet_of(at, made)
    connection = connection_of(at, packet.connection)
    segment = packet.number
    in_order = segment == connection.expected
    slot = slot_of(at, connection, segment)
    if segment >= connection.expected:
        slot.received = True
    while connection.expected < connection.next and slot_of(at, connection, connection.expected).received:
        connection.expected += 1
    while connection.arriving != NONE and message_of(at, connection.arriving).end <= connection.expected:
        note(at, DELIVERED, connection.arriving)
        connection.arriving = message_of(at, connection.arriving).next
    is_gap = not in_order or connection.top > segment + 1
    connection.top = max(connection.top, segment + 1)
    is_marked = packet.flags & MARKED != 0
    is_change = is_marked != connection.was_marked
    connection.was_marked = is_marked
    connection.pending += 1
    connection.pending_marked += is_marked
    if connection.pending >= 2 or is_gap or is_change or packet.flags & (LAST | PUSH):
        _acknowledge(at, connection, packet)


@inlined
def _acknowledge(at, connection, packet):
    """Send an acknowledgement, in answer to this packet."""
    made = new_reply(at, packet.connection)
    reply = packet_of(at, made)
    reply.flags, reply.size = PROTECTED | REPLY, ACKNOWLEDGEMENT
    reply.number, reply.segment, reply.order, reply.sent = connection.expected, packet.number, packet.order, packet.sent
    reply.received, reply.marked = connection.pending, connection.pending_marked
    connection.pending, connection.pending_marked = 0, 0
    enqueue(at, port_on(at, reply.path, 0), made)


@njit
def acknowledge(at, made):
    """An acknowledgement has arrived at the sender."""
    state, packet = state_of(at), packet_of(at, made)
    number = packet.connection
    connection = connection_of(at, number)
    flight = connection.under_way
    before = connection.acknowledged
    if packet.segment >= connection.acknowledged:
        slot = slot_of(at, connection, packet.segment)
        if slot.state != KNOWN:
            if slot.state == LOST or slot.order != packet.order:
                _was_only_late(connection, packet.order)
            remove(at, connection, packet.segment)
            slot.state = KNOWN
    while connection.acknowledged < packet.number:
        if slot_of(at, connection, connection.acknowledged).state != KNOWN:
            remove(at, connection, connection.acknowledged)
        connection.acknowledged += 1
    connection.highest = max(connection.highest, packet.order)
    _measure(connection, state.now - packet.sent)
    if connection.kind == RELIABLE:
        _find_losses(at, connection)
        is_growing = not connection.linux or connection.acknowledged > before
        _adapt(connection, packet, flight, flight - connection.under_way if is_growing else 0)
    if connection.acknowledged > before:
        connection.backoff = 0
    if connection.under_way == 0 and connection.lost_first == NONE:
        connection.deadline = NEVER
    else:
        start_timeout(at, number)
    while connection.first != NONE:
        message = message_of(at, connection.first)
        _learn(connection, message, state.now)
        if message.end > connection.acknowledged:
            break
        note(at, ACKNOWLEDGED, connection.first)
        connection.first = message.next
    wake(at, number)


@inlined
def _learn(connection, message, now):
    """More bytes of a message are acknowledged."""
    left = (message.end - connection.acknowledged) * connection.payload
    known = message.size if left <= 0 else message.size + (-message.size) % connection.payload - left
    if known > 0 and message.first_known == 0:
        message.first_known_at, message.first_known = now, known
    if known >= _NEARLY * message.size and message.nearly_known == 0:
        message.nearly_known_at, message.nearly_known = now, known


@inlined
def _was_only_late(connection, order):
    """A transmission that was considered lost is acknowledged."""
    if order >= connection.undo_from:
        reordering = connection.highest - order + 1
        connection.reordering = max(connection.reordering, min(reordering, _MOST_REORDERING))
        connection.window = max(connection.window, connection.undo)
        connection.threshold = max(connection.threshold, connection.undo_threshold)
        connection.undo = connection.undo_threshold = 0.0


@inlined
def _find_losses(at, connection):
    """Mark transmissions as lost that were sent long before the latest acknowledged one, or before an acknowledged
    probe, and halve the window once a round."""
    is_probed = connection.probe <= connection.highest
    is_news = False
    while connection.oldest != NONE:
        segment = connection.oldest
        order = slot_of(at, connection, segment).order
        if order + connection.reordering > connection.highest and not (is_probed and order < connection.probe):
            break
        is_news |= order >= connection.recover
        remove(at, connection, segment)
        append_lost(at, connection, segment)
    if is_probed:
        connection.probe = NONE
    if is_news:
        connection.undo, connection.undo_threshold = connection.window, connection.threshold
        _cut(connection, 0.5)
        connection.urgent = connection.linux


@inlined
def _cut(connection, factor):
    shrunk = connection.window * factor
    if connection.linux:
        shrunk = np.floor(np.floor(connection.window) * factor)
    connection.threshold = connection.window = max(shrunk, _LEAST_WINDOW)
    connection.recover = connection.order


@inlined
def _grow(connection, answered):
    """Grow by a segment per round (RFC 5681)."""
    if connection.linux:
        whole = np.floor(connection.window)
        grown = connection.window + answered / whole
        connection.window = grown if grown < whole + _ALMOST else max(whole + 1, np.floor(grown))
    else:
        connection.window += answered / connection.window


@inlined
def _adapt(connection, packet, flight, answered):
    """Grow a used window by the acknowledged segments, and shrink it once a round if packets were marked."""
    connection.seen += packet.received
    connection.seen_marked += packet.marked
    if packet.order >= connection.round_ends:
        part = connection.seen_marked / connection.seen
        connection.alpha += _GAIN * (part - connection.alpha)
        connection.seen, connection.seen_marked = 0, 0
        connection.round_ends = connection.order
    if packet.marked and packet.order >= connection.recover:
        _cut(connection, 1 - connection.alpha / 2)
    elif answered > 0 and connection.window < connection.threshold:
        if 2 * flight >= connection.window:
            connection.window += answered
    elif answered > 0 and packet.order >= connection.recover and flight + 1 >= connection.window:
        _grow(connection, answered)
    connection.window = min(connection.window, float(connection.most))


@inlined
def _measure(connection, round_trip):
    """Measure a round trip (RFC 6298)."""
    error = round_trip - connection.round_trip
    connection.deviation += (abs(error) - connection.deviation) / 4
    connection.round_trip += error / 8


@njit
def time_out(at, number):
    """A timeout without acknowledgements."""
    state, connection = state_of(at), connection_of(at, number)
    if connection.is_early:
        if is_gap(at, connection):
            connection.probe = connection.highest
            _find_losses(at, connection)
        else:
            segment, connection.probe = connection.latest, connection.order
            remove(at, connection, segment)
            append_lost(at, connection, segment)
        start_timeout(at, number)
        wake(at, number)
        return
    connection.probe = NONE
    while connection.oldest != NONE:
        segment = connection.oldest
        remove(at, connection, segment)
        append_lost(at, connection, segment)
    if connection.kind != PFABRIC:
        connection.threshold = max(connection.window / 2, _LEAST_WINDOW)
        connection.window = 1.0
        connection.backoff += 1
        connection.undo = connection.undo_threshold = 0.0
        connection.recover = connection.undo_from = connection.order
    set_timer(at, number, state.now + time_to_wait(connection))
    wake(at, number)


@njit
def rest(connection, now):
    """Shrink an idle window (RFC 2861)."""
    if connection.kind == RELIABLE and connection.under_way == 0 and connection.lost_first == NONE:
        pauses = int((now - connection.active) / time_to_wait(connection))
        if pauses > 0:
            shrunk = connection.window * 0.5 ** min(pauses, 60)
            connection.threshold = max(connection.threshold, 0.75 * connection.window)
            connection.window = max(min(connection.window, connection.initial), shrunk)
