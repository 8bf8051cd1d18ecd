"""The state of a network of packets: arrays of records.

Lists are linked by numbers: packets of a queue, connections that may send, messages of a connection, segments under
way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dlion_sim.bounded_loss.dlcp import RECEIVER, SENDER
from dlion_sim.scenario.network import FULL_FRAME, SEGMENT

NONE = -1
NEVER = 1e301
"""Seconds: an infinity that is compared as fast as any number."""
CLASSES = 8
LONGEST_PATH = 4
"""Ports that a packet can cross."""
HEADER, ACKNOWLEDGEMENT = FULL_FRAME - SEGMENT, 66
"""Bytes of a full frame's headers, and of an acknowledgement."""

# What an entry of the heap is of: number * KINDS + kind.
KINDS = 3
PORT_ENDS, PIPE_ENDS, TIMER_ENDS = range(KINDS)

RAW, RELIABLE, PFABRIC, BOUNDED = range(4)
"""Kinds of connections."""
PROTECTED, MARKED, REPLY, FINAL, LAST, PUSH, CONTROL = (1 << bit for bit in range(7))
"""Flags of packets: marked instead of dropped; was marked; sent to the sender; the last one of a message, sent for the
first time; the last one of a message; its sender waits for the answer; never lost."""
DATA, START, PROBING, NEWS, STOPPING, MAPPING = range(6)
"""Frames of bounded loss (`bounded_loss.dlcp`): of the sender, and of the receiver."""
FREE, OUT, LOST, KNOWN = range(4)
"""States of a segment: not sent, under way, to be sent again, known to be there."""
SENT, DELIVERED, ACKNOWLEDGED, WANTS_ROOM = range(4)
"""Notes: events of messages; and that a connection has no room for more segments."""
SEND, WAKE, RESIZE = range(3)
"""Commands: a connection has a message (value), it may send more, a port has another rate (value)."""

_F, _I, _N = np.float64, np.int64, np.int32

GLOBAL = np.dtype(
    [
        ("now", _F),  # seconds
        ("scheduled", _I),  # entries that the heap has had: of those for one time the first comes first
        ("entries", _I),  # of the heap now
        ("noted", _I),  # notes that wait to be read
        ("hops", _I),  # packets that have left a port
        ("free", _I),  # packets that are not in use
        ("next_free", _N),  # the first of these
        ("commands", _I),  # that wait
        ("spray", np.bool_),
        ("by_size", np.bool_),  # queues are ordered by the remaining bytes of messages
        ("fair", np.bool_),  # queues are of a connection each, and served in turn
        ("made", _I),  # packets ever
        ("ended", _I),  # packets that have ended
        ("seed", np.uint64),
    ]
)
PORT = np.dtype(
    [
        ("rate", _F),  # bytes per second
        ("ends", _F),  # when the packet on the wire has left, infinite without one or without a rate
        ("free", _F),  # when all that was sent would have left at that rate; earlier than it has while a burst lasts
        ("left", _F),  # of that packet, bytes that are left to send while there is no rate
        ("byte_seconds", _F),  # the integral of `queued` until `changed`
        ("changed", _F),
        ("buffer", _I),
        ("drop_above", _I),
        ("mark_above", _I),
        ("burst", _I),
        ("queued", _I),  # bytes that wait
        ("most", _I),  # that ever did
        ("packets", _I),  # that have left
        ("switch", _N),  # whose buffer is shared
        ("sending", _N),  # the packet on the wire
        ("waiting", _N),  # bit by class: packets are queued
        ("ready", _N),  # bit by class: connections may send
    ]
)
QUEUE = np.dtype(
    [
        ("first", _N),  # packets
        ("last", _N),
        ("ready_first", _N),  # connections, in a host's own port
        ("ready_last", _N),
        ("queued", _I),  # bytes that wait
        ("turn", _I),  # that of the packet that left last, where connections have turns
        ("carried", _I),  # bytes that have left
        ("dropped", _I),  # packets
        ("marked", _I),
    ]
)
SWITCH = np.dtype([("buffer", _I), ("queued", _I)])
PIPE = np.dtype([("latency", _F), ("first", _N), ("last", _N)])
PACKET = np.dtype(
    [
        ("time", _F),  # when it is through the pipe
        ("sent", _F),  # when it began
        ("order", _I),  # which of its connection's packets it is
        ("number", _I),  # its segment; of an acknowledgement the first that is missing
        ("segment", _I),  # that an acknowledgement answers
        ("left", _I),  # bytes of its message that are left after it
        ("turn", _I),  # bytes that its connection will have had by then, if all have as many
        ("next", _N),
        ("connection", _N),
        ("message", _N),
        ("path", _N),
        ("size", _N),  # bytes on a link
        ("hop", _N),
        ("priority", _N),
        ("flags", _N),
        ("frame", _N),
        ("received", _N),  # packets that an acknowledgement is for
        ("marked", _N),  # of these
    ]
)
MESSAGE = np.dtype(
    [
        ("size", _I),  # bytes
        ("left", _I),  # bytes that were never sent
        ("resent", _I),  # bytes
        ("end", _I),  # the segment after its last; of a raw one, packets that have not come
        # When the first of its bytes were known to be there, and when nearly all, and how many; as live nodes ask TCP.
        ("first_known_at", _F),
        ("first_known", _I),
        ("nearly_known_at", _F),
        ("nearly_known", _I),
        ("next", _N),
        ("connection", _N),
    ]
)
SLOT = np.dtype(
    [
        ("order", _I),  # of its last transmission
        ("previous", _I),  # segments in a list
        ("next", _I),
        ("message", _N),
        ("size", _N),  # bytes of the message
        ("state", np.uint8),
        ("received", np.bool_),
    ]
)
CONNECTION = np.dtype(
    [
        ("kind", _N),
        ("priority", _N),
        ("nic", _N),  # the port that its packets begin at
        ("path", _N),  # the first of its alternatives
        ("paths", _N),
        ("turn", _N),  # the one that the next packet takes
        ("back", _N),
        ("backs", _N),
        ("back_turn", _N),
        ("pipe", _N),  # of its latency
        ("back_pipe", _N),
        ("loss", _F),
        ("back_loss", _F),
        ("drawn", _I),  # random numbers
        ("protected", np.bool_),
        ("is_ready", np.bool_),
        ("next_ready", _N),
        ("payload", _N),
        ("header", _N),
        # Messages: the first that is not acknowledged, that being sent, the next to be delivered, the newest.
        ("first", _N),
        ("sending", _N),
        ("arriving", _N),
        ("newest", _N),
        # Segments, of which the room of 2**n slots begins at `slots`.
        ("slots", _I),
        ("room", _I),
        ("acknowledged", _I),  # all before this one
        ("next", _I),  # to be sent for the first time
        ("end", _I),  # of what there is to send
        ("most", _I),  # that may be sent and not acknowledged
        ("under_way", _I),
        ("oldest", _I),  # transmission under way
        ("latest", _I),
        ("lost_first", _I),
        ("lost_last", _I),
        # Transmissions, by their order.
        ("order", _I),  # of the next
        ("highest", _I),  # that is known to be there
        ("recover", _I),  # from which on a loss is news
        ("undo_from", _I),  # from which on a late transmission is a sign of reordering
        ("round_ends", _I),  # of what DCTCP counts
        ("reordering", _I),
        ("window", _F),  # segments
        ("threshold", _F),
        ("undo", _F),  # the window before it was cut for a loss, and the threshold
        ("undo_threshold", _F),
        ("initial", _F),
        ("alpha", _F),
        ("seen", _I),
        ("seen_marked", _I),
        ("round_trip", _F),  # smoothed, seconds
        ("deviation", _F),
        ("timeout", _F),  # least, or of a fixed length
        ("backoff", _N),
        ("deadline", _F),
        ("timer", _F),  # when the heap has it come
        ("active", _F),  # when it last sent
        ("linux", np.bool_),  # loss recovery is that of Linux
        ("urgent", np.bool_),  # the next that is sent again does not wait for the window
        ("is_early", np.bool_),  # its timeout is for losses near an end (RFC 8985)
        ("probe", _I),  # earlier transmissions are lost if they are not acknowledged when this one is
        # The receiver.
        ("expected", _I),  # the first segment that has not come
        ("top", _I),  # after all that have
        ("pending", _N),  # packets that are not acknowledged
        ("pending_marked", _N),
        ("was_marked", np.bool_),
        # Of bounded loss.
        ("endpoint", _N),  # both ends' records
        ("serial", _I),  # which of its messages it is at
        ("pieces", _I),  # where the packets of its message begin
        ("count", _I),  # so many
        ("count_room", _I),
        ("groups", _I),  # where the groups that its packets belong to begin
        ("group_count", _I),
        ("group_count_room", _I),
        ("start_size", _N),  # bytes of what announces the message
        ("stops_early", np.bool_),
    ]
)
ENTRY = np.dtype([("time", _F), ("sequence", _I), ("of", _I)])
NOTE = np.dtype([("time", _F), ("what", _N), ("message", _N)])
COMMAND = np.dtype([("value", _F), ("what", _N), ("of", _N)])

ARRAYS: dict[str, Any] = {
    "state": GLOBAL,
    "ports": PORT,
    "queues": QUEUE,
    "switches": SWITCH,
    "pipes": PIPE,
    "paths": np.dtype((_N, (LONGEST_PATH + 1,))),
    "connections": CONNECTION,
    "messages": MESSAGE,
    "slots": SLOT,
    "packets": PACKET,
    "heap": ENTRY,
    "notes": NOTE,
    "commands": COMMAND,
    # Of bounded loss, a record a connection; a number a packet of its message; a number a group.
    "senders": SENDER,
    "receivers": RECEIVER,
    "known": np.dtype(np.uint8),  # whether the sender knows that it is there
    "there": np.dtype(np.uint8),  # whether it is
    "mapped": np.dtype(np.uint8),  # whether it is in the bitmap that is under way
    "tried": np.dtype(np.uint8),  # whether it was ever sent
    "shielded": np.dtype(np.uint8),  # whether it is protected
    "urgency": np.dtype(np.int8),  # its priority
    "order": np.dtype(np.int32),  # the packets, as they are sent
    "group": np.dtype(np.int32),
    "sizes": np.dtype(np.int64),  # bytes of the message
    "arrived": np.dtype(np.float64),  # seconds
    "missing": np.dtype(np.int64),  # bytes
    "allowed": np.dtype(np.int64),
}
"""All arrays in the order of their addresses; a path ends with NONE."""
PIECES = ("known", "there", "mapped", "tried", "shielded", "urgency", "order", "group", "sizes", "arrived")
"""Arrays of a number a packet of a message of bounded loss, all of them alike."""
