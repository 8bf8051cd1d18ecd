"""Access of compiled code to the arrays: each function gets `at`, the address of the table of their addresses.

That is a number: an array as argument would have its references counted at each call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, njit  # type: ignore[attr-defined]

from dlion_sim.simulation.packets.state import ARRAYS, LONGEST_PATH
from dlion_sim.simulation.progressive_filling import pointer

inlined = njit(forceinline=True)
"""Without a cache, as callers would not be recompiled after a change."""
_PLACE = {name: place for place, name in enumerate(ARRAYS)}
_PATHS = _PLACE["paths"]
_ADDRESSES = len(ARRAYS), 2


@inlined
def _table(at):
    return carray(pointer(at), _ADDRESSES, np.int64)


def _view(name: str) -> Any:
    place, dtype = _PLACE[name], ARRAYS[name]

    @inlined
    def view(at):
        table = _table(at)
        return carray(pointer(table[place, 0]), table[place, 1], dtype)

    return view


state_of = _view("state")
ports_of = _view("ports")
queues_of = _view("queues")
switches_of = _view("switches")
pipes_of = _view("pipes")
connections_of = _view("connections")
messages_of = _view("messages")
slots_of = _view("slots")
packets_of = _view("packets")
heap_of = _view("heap")
notes_of = _view("notes")
commands_of = _view("commands")
senders_of = _view("senders")
receivers_of = _view("receivers")
known_of = _view("known")
there_of = _view("there")
mapped_of = _view("mapped")
tried_of = _view("tried")
shielded_of = _view("shielded")
urgency_of = _view("urgency")
order_of = _view("order")
group_of = _view("group")
sizes_of = _view("sizes")
arrived_of = _view("arrived")
missing_of = _view("missing")
allowed_of = _view("allowed")


@inlined
def paths_of(at):
    """Paths, a row each: its ports, then NONE."""
    table = _table(at)
    return carray(pointer(table[_PATHS, 0]), (table[_PATHS, 1], LONGEST_PATH + 1), np.int32)


@inlined
def slot_of(connection, segment):
    """The slot of a segment."""
    return connection.slots + (segment & (connection.room - 1))


@inlined
def note(at, what, message):
    """Add a note of an event of a message or connection."""
    state = state_of(at)[0]
    noted = notes_of(at)[state.noted]
    noted.time, noted.what, noted.message = state.now, what, message
    state.noted += 1
