"""What two nodes tell each other of a message in datagrams, in frames of their control connections. No I/O.

START, from the sender, with the message's header; QUERY, once all has left; from the receiver BITMAP, what is there, or
STOP, that it is enough. All name the message: its channel, and its number on that channel.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dlion_sim.live.frames import Payload, PeerError
from dlion_sim.protocol.messages import Buffer, Channel

_FIELDS = struct.Struct("<BxxxI")
_CHANNELS = frozenset(Channel)


class Notice(NamedTuple):
    """Something about the message of that `number` on a channel; `rest` is what else is said."""

    channel: Channel
    number: int
    rest: Buffer = b""

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
