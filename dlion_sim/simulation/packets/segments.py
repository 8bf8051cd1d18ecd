"""Lists of segments: those under way, in the order in which they were sent, and those to be sent again."""

from __future__ import annotations

from dlion_sim.simulation.packets.state import LOST, NONE, OUT
from dlion_sim.simulation.packets.views import inlined, slot_of


@inlined
def append_out(connection, slots, segment):
    """It is under way from now on."""
    slot = slots[slot_of(connection, segment)]
    slot.state, slot.order = OUT, connection.order
    slot.previous, slot.next = connection.latest, NONE
    if connection.latest == NONE:
        connection.oldest = segment
    else:
        slots[slot_of(connection, connection.latest)].next = segment
    connection.latest = segment
    connection.order += 1
    connection.under_way += 1


@inlined
def append_lost(connection, slots, segment):
    """It is to be sent again."""
    slot = slots[slot_of(connection, segment)]
    slot.state = LOST
    slot.previous, slot.next = connection.lost_last, NONE
    if connection.lost_last == NONE:
        connection.lost_first = segment
    else:
        slots[slot_of(connection, connection.lost_last)].next = segment
    connection.lost_last = segment


@inlined
def remove(connection, slots, segment):
    """It is neither under way nor lost any more."""
    slot = slots[slot_of(connection, segment)]
    before, after = slot.previous, slot.next
    is_out = slot.state == OUT
    if before != NONE:
        slots[slot_of(connection, before)].next = after
    elif is_out:
        connection.oldest = after
    else:
        connection.lost_first = after
    if after != NONE:
        slots[slot_of(connection, after)].previous = before
    elif is_out:
        connection.latest = before
    else:
        connection.lost_last = before
    if is_out:
        connection.under_way -= 1
