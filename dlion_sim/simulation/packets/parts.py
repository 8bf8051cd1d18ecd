"""The parts and results of a network of packets, as plain values."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dlion_sim.scenario.network import SEGMENT
from dlion_sim.simulation.packets.state import HEADER, NONE


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
    burst: float = 0.0
    """The size of a token bucket: bytes that pass without delay after a pause."""
    switch: int = NONE
    """The switch whose buffer it shares, instead of its own."""


class Raw(NamedTuple):
    """An open-loop source, for tests only: no window, no acknowledgements, no retransmissions."""

    protected: bool = True
    payload: int = SEGMENT
    header: int = HEADER
    """Bytes that each packet has on links beside its payload."""


class Reliable(NamedTuple):
    """Reliable, ordered segments with DCTCP's window."""

    initial_window: int = 10
    """Segments."""
    receive_window: float = 3 * 1024.0**2
    """Bytes that may be under way or wait for earlier ones at the receiver."""
    least_timeout: float = 0.2
    """The least timeout beyond a round trip (s)."""
    linux: bool = False
    """Whether loss recovery is that of Linux."""


class Pfabric(NamedTuple):
    """A window of a bandwidth-delay product; packets are queued by the remaining size of their message."""

    window: int
    """Segments."""
    timeout: float
    """Seconds."""


class Bounded(NamedTuple):
    """Messages, one after another, of which a part may be missing (`bounded_loss.dlcp`)."""

    initial_window: float = 10.0
    """Packets; an infinite window stays so."""
    least_timeout: float = 0.01
    """Seconds."""


Endpoint = Raw | Reliable | Pfabric | Bounded


class Pieces(NamedTuple):
    """The packets of a message of which a part may be missing; arrays [n]."""

    received: npt.NDArray[np.uint8]
    """Whether each was received."""
    sent: npt.NDArray[np.uint8]
    """Whether each was ever sent."""
    arrived: npt.NDArray[np.float64]
    """The time of each (s), NaN if not received."""


class Acknowledged(NamedTuple):
    """The acknowledged bytes of a message at a time."""

    at: float
    """Seconds."""
    size: int
    """Bytes that are received, all from the first on."""


class Completion(NamedTuple):
    """An event of a message, with its time (s)."""

    what: Literal["sent", "delivered", "acknowledged"]
    """`sent`: its last byte has left the sender's NIC for the first time; `delivered`: the receiver has all of it and
    of those before it; `acknowledged`: the sender knows that."""
    message: int
    time: float
