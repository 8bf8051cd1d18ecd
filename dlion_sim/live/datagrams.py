"""Datagrams: packets of messages that may lose some, and feedback on them, as they go over UDP. No I/O.

A packet is a header of 32 bytes, a tag of 16, and entries of the message's tensors. Feedback is a header and a tag. The
tag is a keyed BLAKE2b over all else. Packets that one node sends another on a channel have a key of their own, derived
from the handshake of their connection, and so has the feedback on them: without it datagrams can neither be made, nor
altered or redirected. Its send number prevents that one counts twice (`Observed`).

An invalid datagram is discarded, and counts as lost.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple, Self

from dlion_sim.protocol.messages import Buffer, Channel

_MAGIC = b"DLU1"
_ORIGIN = struct.Struct("<4sBBxxI")
_PACKET = struct.Struct("<4sBBxxIIIId")
_FEEDBACK = struct.Struct("<4sBBxxIIIIId")
_TAG_BYTES = 16
_LATEST = 1024
"""The most recent packets, in the order of sending, whose arrival is remembered."""
_MASK = (1 << _LATEST) - 1

ORIGIN_BYTES = _ORIGIN.size


class Sort(IntEnum):
    """The sort of a datagram."""

    PACKET = 1
    """Entries of a message."""
    FEEDBACK = 2
    """On the received packets of a message."""


def origin(sort: Sort, channel: Channel, sender: int) -> bytes:
    """The first bytes of all datagrams of a sort by `sender`, on messages on a channel."""
    return _ORIGIN.pack(_MAGIC, sort, channel, sender)


class Packet(NamedTuple):
    """The header of packet number `packet` of the `message`-th message on a channel from `sender`."""

    channel: int
    sender: int
    message: int
    packet: int
    number: int
    """The send number: so many packets of the message were sent before, with resent ones."""
    clock: float
    """When it was sent, in seconds by its sender's clock."""

    def header(self) -> bytes:
        return _PACKET.pack(_MAGIC, Sort.PACKET, *self)

    @classmethod
    def parse(cls, data: Buffer) -> Self:
        """Of an authentic packet."""
        return cls(*_PACKET.unpack_from(data)[2:])


class Feedback(NamedTuple):
    """The state of the `message`-th message on a channel at its receiver, the `sender` of this."""

    channel: int
    sender: int
    message: int
    highest: int
    """Of the send numbers that have arrived."""
    received: int
    """The number of packets that have arrived."""
    marked: int
    """The number of those with the mark of a congested link (ECN's CE)."""
    clock: float
    """Of the packet that it answers."""

    def header(self) -> bytes:
        return _FEEDBACK.pack(_MAGIC, Sort.FEEDBACK, *self)

    @classmethod
    def parse(cls, data: Buffer) -> Self:
        """Of authentic feedback."""
        return cls(*_FEEDBACK.unpack_from(data)[2:])


class Key:
    """Makes and checks the tags of one origin's datagrams."""

    def __init__(self, sort: Sort, key: bytes) -> None:
        self._keyed = blake2b(key=key, digest_size=_TAG_BYTES)
        self._header = (_PACKET if sort is Sort.PACKET else _FEEDBACK).size
        self._start = self._header + _TAG_BYTES

    def seal(self, header: bytes, payload: Iterable[Buffer] = ()) -> bytes:
        """The header and its tag, which the payload is to follow."""
        return header + self._tag(header, payload)

    def opened(self, data: memoryview) -> memoryview | None:
        """The payload of a datagram of that origin; None unless it was sealed with this key."""
        payload = data[self._start :]
        tag = self._tag(data[: self._header], (payload,))
        return payload if hmac.compare_digest(data[self._header : self._start], tag) else None

    def _tag(self, header: Buffer, payload: Iterable[Buffer]) -> bytes:
        hashed = self._keyed.copy()
        hashed.update(header)
        for buffer in payload:
            hashed.update(buffer)
        return hashed.digest()


@dataclass
class Counts:
    """Counts of the datagrams that have arrived at a node."""

    received: int = 0
    refused: int = 0
    """Of these, damaged, forged, replayed or of another run."""
    unannounced: int = 0
    """Of these, of no message in progress: mostly late ones, of a complete message."""


class Observed:
    """The send numbers of a message that have arrived."""

    def __init__(self) -> None:
        self._highest = -1
        self._latest = 0
        """Bit k is that of `_highest` - k."""

    def add(self, number: int) -> bool:
        """Add one; whether it is new. Those far below the highest count as old."""
        behind = self._highest - number
        if behind < 0:
            self._highest = number
            self._latest = (self._latest << -behind | 1) & _MASK if -behind < _LATEST else 1
            return True
        if behind >= _LATEST or self._latest >> behind & 1:
            return False
        self._latest |= 1 << behind
        return True
