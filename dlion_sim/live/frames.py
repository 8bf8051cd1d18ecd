"""Frames: the units of a stream of bytes between nodes. No I/O.

A frame is a head of 5 bytes, with its kind and its payload's length, and the payload. TLS below sees to it that frames
arrive as they were sent, in order, and that nobody else can read or make them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Literal

from dlion_sim.protocol.messages import Buffer

_HEAD = struct.Struct("<BI")
HEAD_BYTES = _HEAD.size


class Kind(IntEnum):
    """The kind of a frame."""

    HELLO = 1
    """The connecting node says who it is."""
    WELCOME = 2
    """The accepting node lets it in."""
    MESSAGE = 3
    """A message of the protocol."""
    READY = 4
    """This participant has all its connections."""
    GONE = 5
    """This participant was lost."""
    DONE = 6
    """The sender is done; it still answers."""
    ALIVE = 7
    """A sign of life."""
    PROBE = 8
    """Has no content: the sender measures its time."""
    NOTICE = 9
    """Concerns a message in datagrams."""


News = Literal[Kind.READY, Kind.GONE, Kind.DONE]
"""The state of a participant."""


class PeerError(Exception):
    """The peer's fault: it sent something invalid, or nothing for too long."""


@dataclass(frozen=True)
class Payload:
    """A frame's content: these buffers, one after another, which must not be written any more."""

    buffers: Sequence[Buffer] = ()

    @cached_property
    def length(self) -> int:
        """In bytes."""
        return sum(map(len, self.buffers))


def head(kind: Kind, length: int) -> bytes:
    """The head of a frame with a payload of so many bytes."""
    return _HEAD.pack(kind, length)


def parse_head(data: Buffer, limit: int) -> tuple[Kind, int]:
    """The kind and the payload's length. Raises PeerError for an unknown kind, or more than `limit` bytes."""
    number, length = _HEAD.unpack(data)
    if length > limit:
        raise PeerError(f"announced {length} bytes, where {limit} are the most")
    try:
        return Kind(number), length
    except ValueError:
        raise PeerError(f"sent a frame of the unknown kind {number}") from None
