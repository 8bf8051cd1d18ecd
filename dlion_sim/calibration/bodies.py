"""Bodies of the messages between measuring nodes."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from dlion_sim.protocol.messages import Body, Channel, Count, Shapes, is_one

Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e10)]
BitsPerSecond = Annotated[float, msgspec.Meta(gt=0, le=1e15)]


class Turn(Body, frozen=True, array_like=True):
    """From node 0: measure the path to that node."""

    kind: ClassVar[str] = "turn"
    receiver: Count


class Ping(Body, frozen=True, array_like=True):
    """Answer at once."""

    kind: ClassVar[str] = "ping"
    number: Count


class Pong(Body, frozen=True, array_like=True):
    """The answer to the ping of that number."""

    kind: ClassVar[str] = "pong"
    number: Count


class Load(Body, frozen=True, array_like=True):
    """Random entries. First come loads that do not count, then those that do; the last one requests `Received`."""

    kind: ClassVar[str] = "load"
    channel: ClassVar[Channel] = Channel.DATA
    counts: bool
    last: bool

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        """One tensor, of up to `parameters` values."""
        return is_one(shapes, "f4", parameters)


class Received(Body, frozen=True, array_like=True):
    """Bytes of counting load and the seconds in which they arrived, since the last load that does not count."""

    kind: ClassVar[str] = "received"
    size: Annotated[int, msgspec.Meta(ge=1)]
    seconds: Seconds


class Measured(Body, frozen=True, array_like=True):
    """To node 0: the measured path from the sender to that node."""

    kind: ClassVar[str] = "measured"
    receiver: Count
    bps: BitsPerSecond
    round_trip: Seconds
    median_round_trip: Seconds
