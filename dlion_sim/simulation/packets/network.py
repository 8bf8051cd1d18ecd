"""A packet-level network in virtual time, usable by itself: ports, connections over them, and messages.

A path is a tuple of ports, from the sender's NIC to the receiver's. The first port of a path is a host's own: no queue,
but whenever it is free it pulls a packet of those connections that may send, the most urgent class first, in turn among
equals. Every other port has a queue. A connection's latency passes after its first port.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy.typing as npt

NONE = -1
CLASSES = 8
"""Strict priorities of a port; 0 is the most urgent."""


class Port(NamedTuple):
    """One direction of a link. Sizes are bytes of waiting packets; the one on the wire does not count."""

    rate: float
    """Bytes per second; 0 is an outage, infinite takes no time."""
    buffer: float = math.inf
    """A packet that would bring the queues of all classes above that is dropped."""
    drop_above: float = math.inf
    """So is one that is not protected where it would bring its class's queue above that."""
    mark_above: float = math.inf
    """A protected one that would is marked (CE)."""
    switch: int = NONE
    """The switch whose buffer it shares, which then counts in the place of its own."""


class Raw(NamedTuple):
    """An open-loop source: no window, no acknowledgements, nothing is sent again."""

    protected: bool = True
    payload: int = 1448
    header: int = 66
    """Bytes that each packet has on links beside its payload."""


class Reliable(NamedTuple):
    """A stream of segments with DCTCP's window, of which all arrive in order."""

    initial_window: int = 10
    """Segments."""
    receive_window: float = 3 * 1024.0**2
    """Bytes of messages that may be under way or wait for one before them."""
    least_timeout: float = 0.2
    """Seconds that are added to a round trip, at least, before a timeout."""


class Pfabric(NamedTuple):
    """All of a message that a bandwidth-delay product holds at once; queues go by what is left of it."""

    window: int
    """Segments."""
    timeout: float
    """Seconds."""


Endpoint = Raw | Reliable | Pfabric


class Completion(NamedTuple):
    """What has become of a message at a time (seconds)."""

    what: Literal["sent", "delivered", "acknowledged"]
    """`sent`: its last byte has left the sender's NIC for the first time; `delivered`: the receiver has all of it and
    of those before it; `acknowledged`: the sender knows that."""
    message: int
    time: float


class PacketNetwork:
    """Ports by number, and what is sent over them.

    `switches` are the bytes of buffers that ports share. With `spray` each packet takes the next one of its
    connection's paths in turn, otherwise all take the first. Random losses come from `seed`.
    """

    def __init__(
        self, ports: Sequence[Port], *, switches: Sequence[float] = (), spray: bool = False, seed: int = 0
    ) -> None:
        raise NotImplementedError

    @property
    def now(self) -> float:
        """Seconds."""
        raise NotImplementedError

    def connect(
        self,
        paths: Sequence[Sequence[int]],
        ways_back: Sequence[Sequence[int]] = (),
        *,
        latency: float = 0.0,
        latency_back: float | None = None,
        loss: float = 0.0,
        loss_back: float = 0.0,
        priority: int = 0,
        endpoint: Endpoint = Reliable(),
    ) -> int:
        """A connection over any of equally good `paths`, with its acknowledgements on `ways_back`; its number.

        All paths begin at one NIC. Latencies are seconds one way, by default the same back; losses the part of
        packets that vanish after the first port.
        """
        raise NotImplementedError

    def send(self, connection: int, size: float) -> int:
        """Append a message of `size` bytes to what a connection has to send, now; the message's number.

        Numbers are used again once a message is acknowledged (or, of a raw connection, delivered).
        """
        raise NotImplementedError

    def resize(self, port: int, rate: float) -> None:
        """From now on a port carries so many bytes per second; what is on its wire goes on with that."""
        raise NotImplementedError

    def run(self, until: float = math.inf) -> list[Completion]:
        """Let all happen until that time, and tell what has become of messages, in order; with `until` infinite until
        nothing is left to happen."""
        raise NotImplementedError

    def counters(self) -> npt.NDArray[Any]:
        """A record of each port since the start, [ports]: by class `carried` bytes, `dropped` and `marked` packets
        [CLASSES]; `carried_packets`; `queued`, the bytes that wait now, `most`, the most that did, and
        `byte_seconds`, their integral over time."""
        raise NotImplementedError

    @property
    def hops(self) -> int:
        """Packets that ports have transmitted, acknowledgements too."""
        raise NotImplementedError
