"""What a network of packets is made of and tells, as plain values."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dlion_sim.simulation.packets.state import HEADER, NONE, SEGMENT


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
    """Bytes that pass in no time after a pause in which as many could have, as a token bucket lets them."""
    switch: int = NONE
    """The switch whose buffer it shares, which then counts in the place of its own."""


class Raw(NamedTuple):
    """An open-loop source: no window, no acknowledgements, nothing is sent again."""

    protected: bool = True
    payload: int = SEGMENT
    header: int = HEADER
    """Bytes that each packet has on links beside its payload."""


class Reliable(NamedTuple):
    """A stream of segments with DCTCP's window, of which all arrive in order."""

    initial_window: int = 10
    """Segments."""
    receive_window: float = 3 * 1024.0**2
    """Bytes of messages that may be under way or wait for one before them."""
    least_timeout: float = 0.2
    """Seconds that are added to a round trip, at least, before a timeout."""
    linux: bool = False
    """Whether losses are found and mended as Linux does."""


class Pfabric(NamedTuple):
    """All of a message that a bandwidth-delay product holds at once; queues go by what is left of it."""

    window: int
    """Segments."""
    timeout: float
    """Seconds."""


class Bounded(NamedTuple):
    """Messages, one after another, of which some may be missing (`transport.dlcp`)."""

    initial_window: float = 10.0
    """Packets; an infinite window is never changed."""
    least_timeout: float = 0.01
    """Seconds."""


Endpoint = Raw | Reliable | Pfabric | Bounded


class Pieces(NamedTuple):
    """What has become of the packets of a message of which some may be missing; arrays [n]."""

    there: npt.NDArray[np.uint8]
    """Whether each has arrived."""
    tried: npt.NDArray[np.uint8]
    """Whether it was ever sent."""
    arrived: npt.NDArray[np.float64]
    """Seconds, NaN for those that have not."""


class Known(NamedTuple):
    """What a sender knew of a message."""

    at: float
    """Seconds."""
    size: int
    """Bytes that are there, all from the first on."""


class Completion(NamedTuple):
    """What has become of a message at a time (seconds)."""

    what: Literal["sent", "delivered", "acknowledged"]
    """`sent`: its last byte has left the sender's NIC for the first time; `delivered`: the receiver has all of it and
    of those before it; `acknowledged`: the sender knows that."""
    message: int
    time: float
