"""Access of compiled code to the arrays: each function gets `at`, the address of the table of their addresses.

That is a number: an array as argument would have its references counted at each call. Records are found without
Python's negative indices, which every access would otherwise allow for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, njit  # type: ignore[attr-defined]

from dlion_sim.addresses import pointer
from dlion_sim.simulation.packets.state import ARRAYS, LONGEST_PATH

inlined = njit(forceinline=True)
"""Without a cache, as callers would not be recompiled after a change."""
_PLACE = {name: place for place, name in enumerate(ARRAYS)}
_SHAPE = len(ARRAYS), 2
_PATHS = _PLACE["paths"]


@inlined
def _table(at):
    """Address and length of each array."""
    return carray(pointer(at), _SHAPE, np.int64)


def _view(name: str) -> Any:
    place, dtype = _PLACE[name], ARRAYS[name]

    @inlined
    def view(at):
        table = _table(at)
        return carray(pointer(table[place, 0]), table[place, 1], dtype)

    return view


def _record(name: str) -> Any:
    records = _view(name)

    @inlined
    def record(at, number):
        return records(at)[np.uint64(number)]

    return record


port_of = _record("ports")
queue_of = _record("queues")
switch_of = _record("switches")
pipe_of = _record("pipes")
connection_of = _record("connections")
message_of = _record("messages")
packet_of = _record("packets")
entry_of = _record("heap")
command_of = _record("commands")
sender_of = _record("senders")
receiver_of = _record("receivers")
heap_of = _view("heap")
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
_state, _slot, _note = _record("state"), _record("slots"), _record("notes")


@inlined
def state_of(at):
    """The record of the whole network."""
    return _state(at, 0)


@inlined
def port_on(at, path, hop):
    """The port at a hop of a path, or NONE after the last."""
    table = _table(at)
    paths = carray(pointer(table[_PATHS, 0]), (table[_PATHS, 1], LONGEST_PATH + 1), np.int32)
    return paths[np.uint64(path), np.uint64(hop)]


@inlined
def slot_of(at, connection, segment):
    """The slot of a segment."""
    return _slot(at, connection.slots + (segment & (connection.room - 1)))


@inlined
def note(at, what, message):
    """Add a note of an event of a message or connection."""
    state = state_of(at)
    noted = _note(at, state.noted)
    noted.time, noted.what, noted.message = state.now, what, message
    state.noted += 1
