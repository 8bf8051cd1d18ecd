"""The frames of bounded loss between both ends, by the decisions of `bounded_loss.dlcp`.

START, PROBE, STOP and BITMAP model a reliable channel: they have the first priority and are never lost.
"""

from __future__ import annotations

from numba import njit

from dlion_sim.bounded_loss.dlcp import (
    BITMAP,
    FEEDBACK,
    NEW,
    STOP,
    accept,
    begin,
    bitmap,
    expect,
    expire,
    feedback,
    probed,
    stop,
)
from dlion_sim.simulation.packets.bounded import CONTROL_FRAME, watch
from dlion_sim.simulation.packets.carrying import new_packet, new_reply
from dlion_sim.simulation.packets.ports import enqueue, wake
from dlion_sim.simulation.packets.state import (
    ACKNOWLEDGED,
    ACKNOWLEDGEMENT,
    CONTROL,
    DATA,
    DELIVERED,
    MAPPING,
    MARKED,
    NEWS,
    NONE,
    PROBING,
    PROTECTED,
    REPLY,
    SENT,
    START,
    STOPPING,
)
from dlion_sim.simulation.packets.views import (
    allowed_of,
    arrived_of,
    connection_of,
    group_of,
    inlined,
    known_of,
    mapped_of,
    missing_of,
    note,
    packet_of,
    port_on,
    receiver_of,
    sender_of,
    sizes_of,
    state_of,
    there_of,
)


@njit
def announce(at, number):
    """Begin a connection's message, whose pieces are stored."""
    now, connection = state_of(at).now, connection_of(at, number)
    first, end = connection.pieces, connection.pieces + connection.count
    groups, groups_end = connection.groups, connection.groups + connection.group_count
    expect(
        receiver_of(at, connection.endpoint),
        group_of(at)[first:end],
        sizes_of(at)[first:end],
        missing_of(at)[groups:groups_end],
        allowed_of(at)[groups:groups_end],
        connection.stops_early,
    )
    begin(sender_of(at, connection.endpoint), connection.count, now)
    made = new_packet(at, number)
    packet = packet_of(at, made)
    packet.flags, packet.frame, packet.priority = PROTECTED | CONTROL, START, 0
    packet.segment, packet.size, packet.left = connection.serial, connection.start_size, 0
    enqueue(at, connection.nic, made)


@njit
def receive_frame(at, made):
    """A frame has arrived; frames of former messages are ignored."""
    packet = packet_of(at, made)
    connection = connection_of(at, packet.connection)
    if packet.segment != connection.serial or connection.first == NONE:
        return
    if packet.frame == DATA:
        _accept(at, connection, packet)
    elif packet.frame == PROBING:
        _answer(at, connection, packet)
    elif packet.frame != START:
        _hear(at, connection, packet)


@inlined
def _accept(at, connection, packet):
    """A packet has arrived at the receiver."""
    first, end = connection.pieces, connection.pieces + connection.count
    groups, groups_end = connection.groups, connection.groups + connection.group_count
    receiver = receiver_of(at, connection.endpoint)
    flags = accept(
        receiver,
        there_of(at)[first:end],
        group_of(at)[first:end],
        sizes_of(at)[first:end],
        missing_of(at)[groups:groups_end],
        allowed_of(at)[groups:groups_end],
        packet.number,
        packet.order,
        1 if packet.flags & MARKED else 0,
    )
    if flags & NEW:
        arrived_of(at)[first + packet.number] = state_of(at).now
    if flags & STOP:
        _stop(at, connection, packet)
    elif flags & FEEDBACK:
        made = _reply(at, packet, NEWS, ACKNOWLEDGEMENT)
        reply = packet_of(at, made)
        reply.flags = PROTECTED | REPLY
        reply.order, reply.sent = receiver.highest, packet.sent
        reply.number, reply.marked = receiver.received, receiver.marked
        enqueue(at, port_on(at, reply.path, 0), made)


@inlined
def _answer(at, connection, packet):
    """A PROBE has arrived."""
    first, end = connection.pieces, connection.pieces + connection.count
    there = there_of(at)[first:end]
    answer = probed(receiver_of(at, connection.endpoint), there, packet.order)
    if answer == STOP:
        _stop(at, connection, packet)
    elif answer == BITMAP:
        mapped_of(at)[first:end] = there
        made = _reply(at, packet, MAPPING, CONTROL_FRAME + (connection.count + 7) // 8)
        enqueue(at, port_on(at, packet_of(at, made).path, 0), made)


@inlined
def _stop(at, connection, packet):
    note(at, DELIVERED, connection.first)
    made = _reply(at, packet, STOPPING, CONTROL_FRAME)
    enqueue(at, port_on(at, packet_of(at, made).path, 0), made)


@inlined
def _reply(at, packet, frame, size):
    """A frame without entries from the receiver to the sender."""
    made = new_reply(at, packet.connection)
    reply = packet_of(at, made)
    reply.flags, reply.frame, reply.size = PROTECTED | REPLY | CONTROL, frame, size
    reply.segment = packet.segment
    return made


@inlined
def _hear(at, connection, packet):
    """A frame of the receiver has arrived at the sender."""
    now, sender = state_of(at).now, sender_of(at, connection.endpoint)
    first, end = connection.pieces, connection.pieces + connection.count
    if packet.frame == STOPPING:
        stop(sender)
        note(at, SENT, connection.first)
        note(at, ACKNOWLEDGED, connection.first)
        connection.first = NONE
    elif packet.frame == MAPPING:
        bitmap(sender, known_of(at)[first:end], mapped_of(at)[first:end], now)
    else:
        feedback(sender, packet.order, packet.number, packet.marked, now - packet.sent, now)
    watch(at, packet.connection)
    wake(at, packet.connection)


@njit
def time_out(at, number):
    """The sender's deadline has passed."""
    connection = connection_of(at, number)
    if connection.first != NONE:
        expire(sender_of(at, connection.endpoint), state_of(at).now)
        watch(at, number)
        wake(at, number)
