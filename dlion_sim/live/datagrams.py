"""Datagrams: packets of messages that may lose some, and feedback on them, as they go over UDP. No I/O.

A packet is a header of 32 bytes, entries of the message's tensors, and a tag of 16. Feedback is a header and a tag.
AES-256-GCM encrypts the entries and authenticates all. Packets that one node sends another on a channel have a key of
their own, which both ends know from the handshake of their connection, and so has the feedback on them: without it
datagrams can neither be read or made, nor altered or redirected. Its send number prevents that one counts twice
(`Observed`).

An invalid datagram is discarded, and counts as lost.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dlion_sim.protocol.messages import Buffer, Channel

_MAGIC = b"DLU2"
_ORIGIN = struct.Struct("<4sBBxxI")
_PACKET = struct.Struct("<4sBBxxIIIId")
_FEEDBACK = struct.Struct("<4sBBxxIIIIId")
_NONCE = slice(12, 24)
"""Of a header: the message's number, and two more, the last of which rises with each datagram on that message."""
_RISING = struct.Struct("<12xI4xI")
"""These two, in a header."""
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
    """Seals or opens one origin's datagrams, with a key of 32 bytes that nothing else uses."""

    def __init__(self, sort: Sort, key: bytes) -> None:
        self._cipher = AESGCM(key)
        self._header = (_PACKET if sort is Sort.PACKET else _FEEDBACK).size
        self._sealed = (0, 0)
        """What the last header said that rises."""

    def seal(self, header: bytes, payload: Iterable[Buffer] = ()) -> bytes:
        """The datagram with this header and payload."""
        message, number = _RISING.unpack_from(header)
        if (message, number + 1) <= self._sealed:
            raise RuntimeError("a nonce would be used again")
        self._sealed = message, number + 1
        return header + self._cipher.encrypt(header[_NONCE], b"".join(payload), header)

    def opened(self, data: memoryview) -> memoryview | None:
        """The payload of a datagram of that origin; None unless it was sealed with this key."""
        header = data[: self._header]
        try:
            return memoryview(self._cipher.decrypt(header[_NONCE], data[self._header :], header))
        except (InvalidTag, ValueError):  # Too short for a nonce.
            return None


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
