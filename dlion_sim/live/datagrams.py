"""Datagrams: packets of messages under bounded loss, and what is answered to them, as they go over UDP. No I/O.

A packet is a header of 32 bytes, a tag of 16, and entries of the message's tensors. Feedback is a header and a tag. The
tag is a keyed BLAKE2b over all else, under a key of one connection's handshake: what one node sends another on one
channel, and what comes back for it, have one each. So whoever does not know it can make no datagram, nor alter one; and
where one is sent again, its number tells (`Seen`).

What a datagram says of itself is only used to find the key. All that is wrong with it makes it lost, like any other.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Iterable
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple, Self

from dlion_sim.protocol.messages import Buffer, Channel

_MAGIC = b"DLU1"
_ORIGIN = struct.Struct("<4sBBxxI")
_PACKET = struct.Struct("<4sBBxxIIIId")
_FEEDBACK = struct.Struct("<4sBBxxIIIIId")
_TAG_BYTES = 16
_LATEST = 4096
"""Of the packets of a message, in the order of sending, those of which it is kept whether they have come."""


class Sort(IntEnum):
    """What a datagram is."""

    PACKET = 1
    """Entries of a message."""
    FEEDBACK = 2
    """What has come of a message."""


HEADER_BYTES = {Sort.PACKET: _PACKET.size, Sort.FEEDBACK: _FEEDBACK.size}
OVERHEAD_BYTES = _PACKET.size + _TAG_BYTES
"""Of a packet."""


class Origin(NamedTuple):
    """Whose a datagram says it is: `sender` made it, about a message on a channel."""

    sort: Sort
    channel: Channel
    sender: int


class Packet(NamedTuple):
    """The header of packet number `packet` of the `message`-th message on a channel from `sender`."""

    channel: Channel
    sender: int
    message: int
    packet: int
    number: int
    """How many packets of the message were sent before, those that were sent again included."""
    clock: float
    """When it was sent, in seconds by its sender's clock."""

    def header(self) -> bytes:
        channel, sender, *rest = self
        return _PACKET.pack(_MAGIC, Sort.PACKET, channel, sender, *rest)

    @classmethod
    def parse(cls, data: Buffer) -> Self:
        """Of an authentic packet."""
        _, _, channel, *rest = _PACKET.unpack_from(data)
        return cls(Channel(channel), *rest)


class Feedback(NamedTuple):
    """What the receiver of a message, `sender`, says of what has come of it so far."""

    channel: Channel
    sender: int
    message: int
    highest: int
    """Of the numbers of its packets that have come."""
    received: int
    """How many have."""
    marked: int
    """How many of those with the mark of a congested link (ECN's CE)."""
    clock: float
    """Of the packet that it answers."""

    def header(self) -> bytes:
        channel, sender, *rest = self
        return _FEEDBACK.pack(_MAGIC, Sort.FEEDBACK, channel, sender, *rest)

    @classmethod
    def parse(cls, data: Buffer) -> Self:
        """Of authentic feedback."""
        _, _, channel, *rest = _FEEDBACK.unpack_from(data)
        return cls(Channel(channel), *rest)


class Key:
    """What the datagrams of one sort, between two nodes on one channel, are tagged with."""

    def __init__(self, key: bytes) -> None:
        self._keyed = blake2b(key=key, digest_size=_TAG_BYTES)

    def seal(self, header: bytes, payload: Iterable[Buffer] = ()) -> bytes:
        """The header and its tag, which the payload is to follow."""
        return header + self._tag(header, payload)

    def opened(self, data: memoryview, sort: Sort) -> memoryview | None:
        """The payload of a datagram; None unless it was sealed with this key."""
        end = HEADER_BYTES[sort]
        payload = data[end + _TAG_BYTES :]
        return payload if hmac.compare_digest(data[end : end + _TAG_BYTES], self._tag(data[:end], (payload,))) else None

    def _tag(self, header: Buffer, payload: Iterable[Buffer]) -> bytes:
        hashed = self._keyed.copy()
        hashed.update(header)
        for buffer in payload:
            hashed.update(buffer)
        return hashed.digest()


def origin(data: Buffer) -> Origin | None:
    """Whose a datagram says it is; None if it is none of this version."""
    if len(data) < _ORIGIN.size:
        return None
    magic, sort, channel, sender = _ORIGIN.unpack_from(data)
    if magic != _MAGIC or sort not in HEADER_BYTES or channel not in _CHANNELS:
        return None
    return Origin(Sort(sort), Channel(channel), sender) if len(data) >= HEADER_BYTES[sort] + _TAG_BYTES else None


_CHANNELS = frozenset(Channel)


class Seen:
    """Which packets of a message have come, by the number that each had when it was sent."""

    def __init__(self) -> None:
        self.highest = -1
        self._latest = 0
        """Bit k is that of `highest` - k."""

    def add(self, number: int) -> bool:
        """Take note of one; whether it is new. Those far below the highest count as old."""
        ahead = number - self.highest
        if ahead > 0:
            self.highest = number
            self._latest = (self._latest << ahead | 1) & _MASK if ahead < _LATEST else 1
            return True
        bit = 1 << -ahead
        if -ahead >= _LATEST or self._latest & bit:
            return False
        self._latest |= bit
        return True


_MASK = (1 << _LATEST) - 1
