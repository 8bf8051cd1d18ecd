"""The event loop: transmissions, latencies and timeouts, in order of time, until there are events of messages."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from dlion_sim import bounded_loss
from dlion_sim.simulation.packets.carrying import end_packet
from dlion_sim.simulation.packets.exchanging import announce, receive_frame
from dlion_sim.simulation.packets.exchanging import time_out as time_out_bounded
from dlion_sim.simulation.packets.heap import drop_first, push, renew_first
from dlion_sim.simulation.packets.ports import end_of_packet, enqueue, resize, wake
from dlion_sim.simulation.packets.reliable import acknowledge, receive, rest, time_out
from dlion_sim.simulation.packets.state import (
    BOUNDED,
    CONTROL,
    DELIVERED,
    FINAL,
    KINDS,
    NEVER,
    NONE,
    PIPE_ENDS,
    PORT_ENDS,
    RAW,
    REPLY,
    SEND,
    SENT,
    WAKE,
)
from dlion_sim.simulation.packets.views import (
    command_of,
    connection_of,
    entry_of,
    heap_of,
    inlined,
    message_of,
    note,
    packet_of,
    pipe_of,
    port_of,
    port_on,
    state_of,
)

UP_TO_DATE, NOTES, GROWS, PAUSES = range(4)
"""Reasons for which the loop returns: time reached; events of messages; arrays are too small; a maximum of events."""
SPARE = 8
"""The most packets and heap entries that an event needs."""


@njit
def _apply_commands(at):
    """Carry out the commands."""
    state = state_of(at)
    for place in range(state.commands):
        command = command_of(at, place)
        if command.what == SEND:
            _append(at, connection_of(at, command.of), int(command.value))
            wake(at, command.of)
        elif command.what == WAKE:
            wake(at, command.of)
        else:
            resize(at, command.of, command.value)
    state.commands = 0


@inlined
def _append(at, connection, number):
    """Append a message to a connection."""
    message = message_of(at, number)
    if connection.kind == BOUNDED:
        announce(at, message.connection)
        return
    rest(connection, state_of(at).now)
    packets = (message.size + connection.payload - 1) // connection.payload
    connection.end += packets
    message.end = packets if connection.kind == RAW else connection.end
    if connection.kind == RAW:  # Its messages under way are not tracked.
        connection.first = connection.sending
    if connection.first == NONE:
        connection.first = number
    else:
        message_of(at, connection.newest).next = number
    connection.newest = number
    if connection.sending == NONE:
        connection.sending = number
    if connection.arriving == NONE:
        connection.arriving = number


@njit
def _leave_nic(at, made):
    """A packet has left a host: it is lost, or arrives after a latency."""
    packet = packet_of(at, made)
    connection = connection_of(at, packet.connection)
    if packet.flags & FINAL:
        note(at, SENT, packet.message)
    is_reply = packet.flags & REPLY
    loss = connection.back_loss if is_reply else connection.loss
    if loss > 0 and not packet.flags & CONTROL and _random(at, connection, packet.connection) < loss:
        end_packet(at, made)
        return
    number = connection.back_pipe if is_reply else connection.pipe
    if number == NONE:
        _forward(at, made)
        return
    pipe = pipe_of(at, number)
    packet.time = state_of(at).now + pipe.latency
    packet.next = NONE
    if pipe.first == NONE:
        pipe.first = made
        push(at, packet.time, number * KINDS + PIPE_ENDS)
    else:
        packet_of(at, pipe.last).next = made
    pipe.last = made


@inlined
def _random(at, connection, number):
    """The next of a connection's random numbers (SplitMix64)."""
    connection.drawn += 1
    mixed = state_of(at).seed + np.uint64(number) * np.uint64(0xD1B54A32D192ED03)
    mixed += np.uint64(connection.drawn) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)) * 2.0**-53


@njit
def _forward(at, made):
    """A packet arrives at the next port of its path, or at its host."""
    packet = packet_of(at, made)
    packet.hop += 1
    port = port_on(at, packet.path, packet.hop)
    if port != NONE:
        enqueue(at, port, made)
        return
    kind = connection_of(at, packet.connection).kind
    if kind == BOUNDED:
        receive_frame(at, made)
    elif packet.flags & REPLY:
        acknowledge(at, made)
    elif kind == RAW:
        _receive_raw(at, packet)
    else:
        receive(at, made)
    end_packet(at, made)


@inlined
def _receive_raw(at, packet):
    message = message_of(at, packet.message)
    message.end -= 1
    if message.end == 0:
        note(at, DELIVERED, packet.message)


def _sources() -> str:
    """A digest of all compiled sources: a part of the cache key, which would not change with other files."""
    folders = Path(__file__).parent, Path(bounded_loss.__file__).parent
    texts = [file.read_bytes() for folder in folders for file in sorted(folder.glob("*.py"))]
    compiled = (text for text in texts if any(word in text for word in (b"njit", b"inlined", b"np.dtype")))
    return hashlib.sha256(b"".join(compiled)).hexdigest()


def _compiled(sources: str) -> Any:
    @njit(cache=True)
    def advance(at, until, most):
        """Carry out commands, then events until a time (s), at most so many; returns the reason, as above."""
        sources  # noqa: B018
        state, room = state_of(at), len(heap_of(at))
        _apply_commands(at)
        for _ in range(most):
            if state.noted:
                return NOTES
            if state.free < SPARE or state.entries + SPARE > room:
                return GROWS
            if state.entries == 0 or entry_of(at, 0).time > until:
                state.now = max(state.now, until) if until < NEVER else state.now
                return UP_TO_DATE
            entry = entry_of(at, 0)
            time, kind, number = entry.time, entry.of % KINDS, entry.of // KINDS
            if kind == PORT_ENDS:
                port = port_of(at, number)
                if port.ends != time:  # It has another rate since.
                    drop_first(at)
                    continue
                state.now = time
                made = end_of_packet(at, number)
                next_time = port.ends
                if packet_of(at, made).hop == 0:
                    _leave_nic(at, made)
                else:
                    _forward(at, made)
            elif kind == PIPE_ENDS:
                state.now = time
                pipe = pipe_of(at, number)
                made = pipe.first
                pipe.first = packet_of(at, made).next
                next_time = packet_of(at, pipe.first).time if pipe.first != NONE else NEVER
                _forward(at, made)
            else:
                connection = connection_of(at, number)
                if connection.timer == time:
                    state.now = time
                    connection.timer = NEVER
                    if connection.deadline <= time:
                        if connection.kind == BOUNDED:
                            time_out_bounded(at, number)
                        else:
                            time_out(at, number)
                    elif connection.deadline < NEVER:
                        connection.timer = connection.deadline
                        renew_first(at, connection.deadline)
                        continue
                drop_first(at)
                continue
            if next_time < NEVER:
                renew_first(at, next_time)
            else:
                drop_first(at)
        return PAUSES

    return advance


advance = _compiled(_sources())
