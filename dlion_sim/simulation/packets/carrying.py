"""Packets of a connection, from creation to end, and its timer."""

from __future__ import annotations

from dlion_sim.simulation.packets.heap import push
from dlion_sim.simulation.packets.state import KINDS, REPLY, TIMER_ENDS
from dlion_sim.simulation.packets.views import connection_of, inlined, packet_of, state_of


@inlined
def new_packet(at, number):
    """A new packet for a connection to send now."""
    made = _take(at)
    state, packet, connection = state_of(at), packet_of(at, made), connection_of(at, number)
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
    state, packet, connection = state_of(at), packet_of(at, made), connection_of(at, number)
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
    state = state_of(at)
    packet_of(at, number).next = state.next_free
    state.next_free = number
    state.free += 1
    state.ended += 1


@inlined
def set_timer(at, number, deadline):
    """Set a connection's timer."""
    connection = connection_of(at, number)
    connection.deadline = deadline
    if deadline < connection.timer:
        connection.timer = deadline
        push(at, deadline, number * KINDS + TIMER_ENDS)


@inlined
def _take(at):
    state = state_of(at)
    number = state.next_free
    state.next_free = packet_of(at, number).next
    state.free -= 1
    state.made += 1
    return number
