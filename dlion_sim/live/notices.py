"""Notices: what two nodes tell each other of a message in datagrams, over their control connections. No I/O."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from dlion_sim.live.frames import Payload, PeerError
from dlion_sim.protocol.messages import Buffer, Channel

_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]


class _Notice(msgspec.Struct, array_like=True, tag=True):
    """Concerns message `number` on a channel, counted from 1."""

    channel: Channel
    number: _Count

    def payload(self) -> Payload:
        """As a frame's payload."""
        return Payload((msgspec.msgpack.encode(self),))


class Start(_Notice):
    """The sender sends a message of this header, in packets."""

    header: bytes


class Probe(_Notice):
    """The sender has sent all packets, `sent` in all, and asks which are missing."""

    sent: _Count


class Bitmap(_Notice):
    """The receiver has these packets: a bit for each."""

    have: bytes


class Stop(_Notice):
    """The receiver needs no more packets than these. They took `pace` seconds a byte; 0 if that is not known."""

    have: bytes
    pace: Annotated[float, msgspec.Meta(ge=0, le=1e9)]


Notice = Start | Probe | Bitmap | Stop


def parse(payload: Buffer) -> Notice:
    """Raises PeerError for what is no notice."""
    try:
        notice: Notice = msgspec.msgpack.decode(payload, type=Notice)
    except msgspec.DecodeError as error:
        raise PeerError(f"sent an invalid notice: {error}") from None
    return notice


def bits(have: NDArray[np.uint8]) -> bytes:
    """The packets that are there, `have` [n] of 0 and 1, as a bit for each."""
    return np.packbits(have).tobytes()


def packets_in(have: bytes, packets: int) -> NDArray[np.uint8]:
    """Which of so many packets are there [packets]. Raises PeerError if there are not as many bits."""
    if len(have) != -(-packets // 8):
        raise PeerError("did not say which packets it has")
    return np.unpackbits(np.frombuffer(have, np.uint8), count=packets)
