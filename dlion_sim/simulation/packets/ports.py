"""Ports: their queues, dropping and marking, and the order of transmission."""

from __future__ import annotations

from numba import njit

from dlion_sim.simulation.packets import bounded
from dlion_sim.simulation.packets.carrying import end_packet
from dlion_sim.simulation.packets.heap import push
from dlion_sim.simulation.packets.sending import may_send, next_packet
from dlion_sim.simulation.packets.state import (
    BOUNDED,
    CLASSES,
    CONTROL,
    KINDS,
    MARKED,
    NEVER,
    NONE,
    PORT_ENDS,
    PROTECTED,
)
from dlion_sim.simulation.packets.views import (
    connection_of,
    inlined,
    message_of,
    packet_of,
    port_of,
    queue_of,
    slot_of,
    state_of,
    switch_of,
)

_SHORT = 127
"""Bytes of a frame that does not wait for a turn; mostly acknowledgements."""


@njit
def enqueue(at, number, made):
    """A packet arrives at a port: it is transmitted, queued, or dropped."""
    state = state_of(at)
    port, packet = port_of(at, number), packet_of(at, made)
    if port.sending == NONE and not port.waiting:
        _put_on_wire(at, number, made)
        if port.ends < NEVER:
            push(at, port.ends, number * KINDS + PORT_ENDS)
        return
    queue = queue_of(at, number * CLASSES + packet.priority)
    waits = _of_connection(at, queue, packet.connection) if state.fair else queue.queued
    if packet.flags & CONTROL:
        pass
    elif not packet.flags & PROTECTED and waits + packet.size > port.drop_above:
        _drop(at, queue, made)
        return
    elif state.fair:
        if waits + packet.size > port.buffer:
            _drop(at, queue, made)
            return
    elif state.by_size:
        while not _has_room(at, port, packet.size):
            worst = _most_left(at, queue)
            if worst == NONE or packet_of(at, worst).left <= packet.left:
                _drop(at, queue, made)
                return
            _take_out(at, port, queue, worst)
            _drop(at, queue, worst)
    elif not _has_room(at, port, packet.size):
        _drop(at, queue, made)
        return
    if packet.flags & PROTECTED and waits + packet.size > port.mark_above:
        packet.flags |= MARKED
        queue.marked += 1
    _put_in(at, port, queue, _before_turn(at, queue, made) if state.fair else queue.last, made)


@njit
def end_of_packet(at, number):
    """The packet on a port's wire has been transmitted: return it, and transmit the next one, if any."""
    state = state_of(at)
    port = port_of(at, number)
    made = port.sending
    packet = packet_of(at, made)
    queue_of(at, number * CLASSES + packet.priority).carried += packet.size
    port.packets += 1
    state.hops += 1
    port.sending = NONE
    _start_next(at, number)
    return made


@njit
def wake(at, number):
    """Register a connection that may have something to send with its host's NIC."""
    connection = connection_of(at, number)
    if connection.is_ready or not may_send(at, number):
        return
    _make_ready(at, number)
    port = port_of(at, connection.nic)
    if port.sending == NONE:
        _start_next(at, connection.nic)
        if port.ends < NEVER:
            push(at, port.ends, connection.nic * KINDS + PORT_ENDS)


@njit
def resize(at, number, rate):
    """Set the rate of a port."""
    state, port = state_of(at), port_of(at, number)
    if port.sending != NONE:
        if port.rate > 0:
            port.left = (port.ends - state.now) * port.rate if port.rate < NEVER else 0.0
        port.ends = state.now + port.left / rate if rate > 0 else NEVER
        port.free = port.ends if rate > 0 else port.free
        if rate > 0:
            push(at, port.ends, number * KINDS + PORT_ENDS)
    port.rate = rate


@inlined
def _put_on_wire(at, number, made):
    port, packet = port_of(at, number), packet_of(at, made)
    port.sending = made
    if port.rate > 0:
        now = state_of(at).now
        port.free = max(port.free, now - port.burst / port.rate) + packet.size / port.rate
        port.ends = max(now, port.free)
    else:
        port.left, port.ends = packet.size, NEVER


@njit
def _start_next(at, number):
    """Transmit the most urgent packet: of a queue, or, in a host's own port, of a connection."""
    state, port = state_of(at), port_of(at, number)
    port.ends = NEVER
    while port.waiting | port.ready:
        which = port.waiting | port.ready
        priority = 0
        while not which & 1:
            which >>= 1
            priority += 1
        queue = queue_of(at, number * CLASSES + priority)
        if port.waiting & (1 << priority):
            made = _next_of_queue(at, queue) if state.by_size else queue.first
            queue.turn = packet_of(at, made).turn
            _take_out(at, port, queue, made)
        else:
            connection = _next_ready(at, port, queue, priority)
            made = next_packet(at, connection)
            if made != NONE and may_send(at, connection):
                _make_ready(at, connection)
        if made != NONE:
            _put_on_wire(at, number, made)
            return


@inlined
def _has_room(at, port, size):
    if port.switch == NONE:
        return port.queued + size <= port.buffer
    switch = switch_of(at, port.switch)
    return switch.queued + size <= switch.buffer


@inlined
def _drop(at, queue, made):
    queue.dropped += 1
    end_packet(at, made)


@inlined
def _count(at, port, queue, size):
    """Change the number of queued bytes."""
    now = state_of(at).now
    port.byte_seconds += port.queued * (now - port.changed)
    port.changed = now
    port.queued += size
    queue.queued += size
    port.most = max(port.most, port.queued)
    if port.switch != NONE:
        switch_of(at, port.switch).queued += size


@njit
def _of_connection(at, queue, number):
    """The bytes of a connection in a queue."""
    waits, each = 0, queue.first
    while each != NONE:
        if packet_of(at, each).connection == number:
            waits += packet_of(at, each).size
        each = packet_of(at, each).next
    return waits


@njit
def _before_turn(at, queue, made):
    """Assign a packet's turn, and find its predecessor: self-clocked fair queueing (Golestani, INFOCOM 1994), where a
    connection's next turn is the packet's bytes after its last one, or after the present."""
    packet = packet_of(at, made)
    packet.turn = queue.turn
    if packet.size > _SHORT:
        each = queue.first
        while each != NONE:
            if packet_of(at, each).connection == packet.connection:
                packet.turn = max(packet.turn, packet_of(at, each).turn)
            each = packet_of(at, each).next
        packet.turn += packet.size
    before, each = NONE, queue.first
    while each != NONE and packet_of(at, each).turn <= packet.turn:
        before, each = each, packet_of(at, each).next
    return before


@inlined
def _put_in(at, port, queue, before, made):
    """Insert a packet into a queue after another one, or NONE."""
    packet = packet_of(at, made)
    if before == NONE:
        packet.next, queue.first = queue.first, made
    else:
        packet.next, packet_of(at, before).next = packet_of(at, before).next, made
    if packet.next == NONE:
        queue.last = made
    port.waiting |= 1 << packet.priority
    _count(at, port, queue, packet.size)


@njit
def _take_out(at, port, queue, made):
    """Remove a packet from its queue."""
    before, each = NONE, queue.first
    while each != made:
        before, each = each, packet_of(at, each).next
    packet = packet_of(at, made)
    if before == NONE:
        queue.first = packet.next
    else:
        packet_of(at, before).next = packet.next
    if queue.last == made:
        queue.last = before
    if queue.first == NONE:
        port.waiting &= ~(1 << packet.priority)
    _count(at, port, queue, -packet.size)


@njit
def _most_left(at, queue):
    """The latest packet of the messages with most bytes left; NONE in an empty queue."""
    found, each = queue.first, queue.first
    while each != NONE:
        if packet_of(at, each).left >= packet_of(at, found).left:
            found = each
        each = packet_of(at, each).next
    return found


@njit
def _next_of_queue(at, queue):
    """The earliest packet of the connection with the message with least bytes left (pFabric, section 4.2)."""
    found, each = queue.first, queue.first
    while each != NONE:
        if packet_of(at, each).left < packet_of(at, found).left:
            found = each
        each = packet_of(at, each).next
    each = queue.first
    while packet_of(at, each).connection != packet_of(at, found).connection:
        each = packet_of(at, each).next
    return each


@njit
def _make_ready(at, number):
    connection = connection_of(at, number)
    if connection.kind == BOUNDED:
        connection.priority = bounded.priority(at, connection)
    queue = queue_of(at, connection.nic * CLASSES + connection.priority)
    connection.is_ready, connection.next_ready = True, NONE
    if queue.ready_first == NONE:
        queue.ready_first = number
        port_of(at, connection.nic).ready |= 1 << connection.priority
    else:
        connection_of(at, queue.ready_last).next_ready = number
    queue.ready_last = number


@inlined
def _left(at, connection):
    """The bytes left to send of the message of a connection's next segment."""
    number = connection.sending
    if connection.lost_first != NONE:
        number = slot_of(at, connection, connection.lost_first).message
    return message_of(at, number).left if number != NONE else 0


@njit
def _next_ready(at, port, queue, priority):
    """Remove the next connection from the ready ones: in turn, or the one with least bytes left to send."""
    before, found = NONE, queue.ready_first
    if state_of(at).by_size:
        last, each = NONE, queue.ready_first
        least = _left(at, connection_of(at, found))
        while each != NONE:
            left = _left(at, connection_of(at, each))
            if left < least:
                least, before, found = left, last, each
            last, each = each, connection_of(at, each).next_ready
    connection = connection_of(at, found)
    if before == NONE:
        queue.ready_first = connection.next_ready
    else:
        connection_of(at, before).next_ready = connection.next_ready
    if queue.ready_last == found:
        queue.ready_last = before
    if queue.ready_first == NONE:
        port.ready &= ~(1 << priority)
    connection.is_ready = False
    return found
