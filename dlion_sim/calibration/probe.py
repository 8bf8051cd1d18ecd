"""Measuring the path from one node to another by messages: pings, then load at full rate. No I/O."""

from __future__ import annotations

from functools import cache
from statistics import median
from typing import Annotated, ClassVar, NamedTuple

import msgspec
import torch
from torch import Tensor

from dlion_sim.live.connection import frame_bytes
from dlion_sim.live.frames import Payload
from dlion_sim.protocol.messages import Body, Channel, Count, MalformedMessageError, Message, Shapes, is_one
from dlion_sim.scenario.matrix import FRAME

_PINGS, _PING_SECONDS, _FEWEST_PINGS = 100, 3.0, 10
"""Maximum number and time of pings, and minimum number."""
_PART_SECONDS = 0.25
"""Length of the parts of a load that are timed separately."""
_WARM_UP_SECONDS, _WARM_UP_ROUND_TRIPS = 1.0, 20
"""Time until TCP is at full rate: the longer of the two."""
_QUEUED = 3
"""Queued loads, so that the link is never idle."""
_LEAST_ENTRIES, MOST_ENTRIES = 1 << 11, 1 << 20
"""Entries of a load."""
_QUICK = 0.02
"""Seconds; loads that are sent faster are doubled, so that the processor is not the bottleneck."""


Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e10)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
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
    acknowledgements: Share


class PathFound(NamedTuple):
    """The measured path from one node to another."""

    bps: float
    """Bits per second with headers: the bandwidth of a link with this throughput of TCP."""
    round_trip: float
    """The minimum, in seconds."""
    median_round_trip: float
    acknowledgements: float
    """For each full frame, at most 1."""


class Probe:
    """The sending end: `begin` returns the first message, the other methods the next ones."""

    def __init__(self, sender: int, receiver: int, seconds: float, now: float) -> None:
        """Throughput is measured over so many `seconds`."""
        self.receiver = receiver
        self._sender = sender
        self._seconds = seconds
        self._began = self._asked = now
        self._round_trips: list[float] = []
        self._entries = _LEAST_ENTRIES
        self._loading_since: float | None = None
        self._counting_since: float | None = None
        self._left_at = now
        self._loaded = False
        """Whether the last load was returned."""

    def begin(self) -> Message:
        """The first ping."""
        return Message(self._sender, Ping(0))

    def answered(self, number: int, now: float) -> list[Message]:
        """A ping was answered: another one, or the first loads. Raises MalformedMessageError if unexpected."""
        if self._loading_since is not None or number != len(self._round_trips):
            raise MalformedMessageError("it answers no ping")
        self._round_trips.append(now - self._asked)
        self._asked = now
        count = len(self._round_trips)
        if count < _FEWEST_PINGS or (count < _PINGS and now - self._began < _PING_SECONDS):
            return [Message(self._sender, Ping(count))]
        self._loading_since = self._left_at = now
        return [self._load(counts=False) for _ in range(_QUEUED)]

    def left(self, now: float) -> list[Message]:
        """A load was sent: the next one, until there were enough."""
        if self._loaded or self._loading_since is None:
            return []
        took, self._left_at = now - self._left_at, now
        if now - self._loading_since < max(_WARM_UP_SECONDS, _WARM_UP_ROUND_TRIPS * median(self._round_trips)):
            if took < _QUICK:
                self._entries = min(2 * self._entries, MOST_ENTRIES)
            return [self._load(counts=False)]
        if self._counting_since is None:
            self._counting_since = now
        self._loaded = now - self._counting_since >= self._seconds
        return [self._load(counts=True)]

    def received(self, size: int, seconds: float, acknowledgements: float) -> PathFound:
        """The measured path, from the receiver's report and TCP's count. Raises MalformedMessageError if too early."""
        if not self._loaded:
            raise MalformedMessageError("it tells of loads that were not all sent")
        bps = 8 * size / seconds * FRAME
        return PathFound(bps, min(self._round_trips), median(self._round_trips), min(1.0, acknowledgements))

    def _load(self, *, counts: bool) -> Message:
        return Message(self._sender, Load(counts, self._loaded), (_noise()[: self._entries],))


class Intake:
    """The receiving end, which times a load.

    Counting load is timed in parts of equal length, and the median one is used, so that a machine's busy moments do not
    affect the result.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._size = 0
        self._parts: list[tuple[int, float]] = []
        """(bytes, seconds)"""

    def take(self, message: Message, body: Load, now: float) -> tuple[int, float] | None:
        """A load has arrived; after the last one, (bytes, seconds) of the median part of the counting load.

        Raises MalformedMessageError.
        """
        if not body.counts:
            self._since, self._size = now, 0
            self._parts.clear()
            return None
        if self._since is None or now <= self._since:
            raise MalformedMessageError("it counts, and nothing was before it")
        self._size += frame_bytes(Payload(message.buffers))
        if now - self._since >= _PART_SECONDS or (body.last and not self._parts):
            self._parts.append((self._size, now - self._since))
            self._since, self._size = now, 0
        if not body.last:
            return None
        self._since = None
        return sorted(self._parts, key=lambda part: part[0] / part[1])[len(self._parts) // 2]


@cache
def _noise() -> Tensor:
    """[MOST_ENTRIES], incompressible."""
    return torch.rand(MOST_ENTRIES, generator=torch.Generator().manual_seed(0))
