"""The next packet of a sender of bounded loss, by the decisions of `bounded_loss.dlcp`."""

from __future__ import annotations

from numba import njit

from dlion_sim.bounded_loss.dlcp import PROBE, WAIT, deadline, take, upcoming
from dlion_sim.simulation.packets.carrying import new_packet, set_timer
from dlion_sim.simulation.packets.state import CONTROL, DATA, NEVER, NONE, PROBING, PROTECTED
from dlion_sim.simulation.packets.views import (
    connection_of,
    inlined,
    known_of,
    message_of,
    order_of,
    packet_of,
    sender_of,
    shielded_of,
    sizes_of,
    state_of,
    tried_of,
    urgency_of,
)

HEADER_BOUNDED = 90
"""Bytes of a frame beside the entries."""
CONTROL_FRAME = 64
"""Bytes of a frame without entries."""


@njit
def may_send(at, connection):
    """Whether there is a packet or a PROBE to send now."""
    return connection.first != NONE and _upcoming(at, connection) != WAIT


@njit
def priority(at, connection):
    """The priority of its next packet."""
    packet = _upcoming(at, connection)
    return urgency_of(at)[connection.pieces + packet] if packet >= 0 else 0


@njit
def next_packet(at, number):
    """Make the next packet of a connection that may send."""
    now, connection = state_of(at).now, connection_of(at, number)
    sender = sender_of(at, connection.endpoint)
    send_number = sender.sent
    chosen = take(sender, _order(at, connection), _known(at, connection), now)
    made = new_packet(at, number)
    packet = packet_of(at, made)
    packet.message, packet.segment, packet.left = connection.first, connection.serial, 0
    if chosen == PROBE:
        packet.flags, packet.frame, packet.priority = PROTECTED | CONTROL, PROBING, 0
        packet.order, packet.size = sender.sent, CONTROL_FRAME
    else:
        piece = connection.pieces + chosen
        message, size = message_of(at, connection.first), sizes_of(at)[piece]
        if tried_of(at)[piece]:
            message.resent += size
        else:
            tried_of(at)[piece] = 1
            message.left -= size
        packet.flags, packet.frame = PROTECTED if shielded_of(at)[piece] else 0, DATA
        packet.priority = urgency_of(at)[piece]
        packet.number, packet.order, packet.size = chosen, send_number, size + HEADER_BOUNDED
    watch(at, number)
    return made


@njit
def watch(at, number):
    """Set the timer to the sender's deadline; none is needed while it waits for the NIC."""
    when = deadline(sender_of(at, connection_of(at, number).endpoint))
    set_timer(at, number, when if state_of(at).now < when < NEVER else NEVER)


@inlined
def _upcoming(at, connection):
    sender = sender_of(at, connection.endpoint)
    return upcoming(sender, _order(at, connection), _known(at, connection), state_of(at).now)


@inlined
def _order(at, connection):
    return order_of(at)[connection.pieces : connection.pieces + connection.count]


@inlined
def _known(at, connection):
    return known_of(at)[connection.pieces : connection.pieces + connection.count]
