"""What two nodes tell each other of a message in datagrams, in frames of their control connections. No I/O.

START, from the sender, with the message's header; QUERY, when all of it has been sent, with how many packets that were;
from the receiver BITMAP, which packets are there, or STOP, which are and are enough, and how fast they came.
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dlion_sim.live.frames import Payload, PeerError
from dlion_sim.protocol.messages import Buffer, Channel

_FIELDS = struct.Struct("<BxxxI")
_COUNT = struct.Struct("<I")
_PACE = struct.Struct("<d")
_CHANNELS = frozenset(Channel)


class Notice(NamedTuple):
    """Something about the message of that `number` on a channel; `rest` is what else is said."""

    channel: Channel
    number: int
    rest: Buffer

    def payload(self) -> Payload:
        return Payload((_FIELDS.pack(self.channel, self.number), self.rest))

    @classmethod
    def parse(cls, payload: memoryview) -> Self:
        """Raises PeerError where it names no message."""
        if len(payload) >= _FIELDS.size:
            channel, number = _FIELDS.unpack_from(payload)
            if channel in _CHANNELS:
                return cls(Channel(channel), number, payload[_FIELDS.size :])
        raise PeerError("said something of no message")


def of_count(count: int) -> bytes:
    """A number of packets, as the rest of a notice."""
    return _COUNT.pack(count)


def count_in(rest: Buffer) -> int:
    """The number of packets that the rest of a notice is. Raises PeerError where it is none."""
    if len(rest) != _COUNT.size:
        raise PeerError("did not say how many packets it has sent")
    return int(_COUNT.unpack(rest)[0])


def of_packets(have: NDArray[np.uint8]) -> bytes:
    """Which packets are there, `have` [n] of 0 and 1, as the rest of a notice: a bit for each."""
    return np.packbits(have).tobytes()


def packets_in(rest: Buffer, packets: int) -> NDArray[np.uint8]:
    """Which of so many packets are there, as the rest of a notice says [packets]. Raises PeerError."""
    if len(rest) != -(-packets // 8):
        raise PeerError("did not say which packets it has")
    return np.unpackbits(np.frombuffer(rest, np.uint8), count=packets)


def of_end(have: NDArray[np.uint8], pace: float) -> bytes:
    """That those packets are enough, and came at so many seconds a byte (0: not known), as the rest of a notice."""
    return _PACE.pack(pace) + of_packets(have)


def end_in(rest: Buffer, packets: int) -> tuple[NDArray[np.uint8], float]:
    """Which of so many packets are there [packets], and how many seconds a byte they took. Raises PeerError."""
    there = packets_in(rest[_PACE.size :], packets)
    (pace,) = _PACE.unpack_from(rest)
    if not 0 <= pace < math.inf:
        raise PeerError("did not say how fast packets came")
    return there, pace
