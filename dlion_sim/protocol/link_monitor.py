"""A worker's measurements of its links: which peers are connected, bandwidths, queued bytes, computation time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from dlion_sim.protocol.events import LocalProtocolError

Source = Literal["measured", "oracle_pair", "oracle_share"]


class LinkMonitor:
    """Connected peers, moving averages of the bandwidth of each link, and of the time of a computation.

    A bandwidth is the average size of messages over their average time. Messages shorter than the average have less
    weight, as their times say less. The worker writes it, its choices read it, and the exchange sets by `follow` how
    bandwidths are obtained.
    """

    def __init__(self, peers: Iterable[int]) -> None:
        self._neighbours = tuple(peers)
        self.peers = self._neighbours
        self._connected = set(self.peers)
        self._smoothing = 0.3
        self._source: Source = "measured"
        self._carried: dict[int, tuple[float, float]] = {}
        """On each link, the average size of messages (bytes) and the average time that they take (seconds)."""
        self._queues: dict[int, list[int]] = {}
        """Sizes of the messages in the queue to each peer, the one being sent first."""
        self._begun: dict[int, float] = {}
        """When the transmission of the first one began."""
        self._compute_seconds: float | None = None

    def follow(self, source: Source, smoothing: float) -> None:
        """Set the source of bandwidths, and the weight of the newest value in averages.

        Measured; or, in simulations, a pair's true capacity: for one flow, or shared with all other links at once.
        """
        self._source, self._smoothing = source, smoothing

    def queued(self, peer: int, size: int, now: float) -> None:
        self._queues.setdefault(peer, []).append(size)
        self._begun.setdefault(peer, now)

    def sent(self, peer: int, now: float) -> None:
        """The first message in the queue to `peer` has been sent. Raises LocalProtocolError if the queue is empty."""
        if peer not in self._queues:
            raise LocalProtocolError(f"a message to {peer} was sent, but none was queued")
        del self._queues[peer][0]
        if self._queues[peer]:
            self._begun[peer] = now
        else:
            del self._queues[peer], self._begun[peer]

    def timed(self, peer: int, size: int, seconds: float) -> None:
        if seconds > 0 and self._source == "measured":
            of_sizes, of_seconds = self._carried.get(peer, (size, seconds))
            weight = self._smoothing * min(1.0, size / of_sizes)
            self._carried[peer] = of_sizes + weight * (size - of_sizes), of_seconds + weight * (seconds - of_seconds)

    def lost(self, peer: int) -> None:
        self._connected.discard(peer)
        self.peers = tuple(each for each in self.peers if each != peer)
        for of_peers in (self._carried, self._queues, self._begun):
            of_peers.pop(peer, None)

    def found(self, peer: int) -> None:
        """There is a new link to `peer`, without measurements."""
        self._connected.add(peer)
        self.peers = tuple(each for each in self._neighbours if each in self._connected)

    def is_connected(self, peer: int) -> bool:
        return peer in self._connected

    def capacity_reported(self, peer: int, alone: float, shared: float) -> None:
        """The true capacity of the link to `peer` (bytes per second), see `LinkCapacity`."""
        if self._source != "measured":
            self._carried[peer] = alone if self._source == "oracle_pair" else shared, 1.0

    def messages(self, peer: int) -> int:
        return len(self._queues.get(peer, ()))

    def is_busy(self, peer: int) -> bool:
        return peer in self._queues

    @property
    def waiting(self) -> int:
        """Bytes of all queued messages."""
        return sum(map(sum, self._queues.values()))

    @property
    def compute_seconds(self) -> float | None:
        """Average time of an iteration's computation; None before the first."""
        return self._compute_seconds

    def computed(self, seconds: float) -> None:
        average = self._compute_seconds
        self._compute_seconds = seconds if average is None else average + self._smoothing * (seconds - average)

    def budget(self, peer: int, now: float) -> float:
        """The link budget: bytes that the link to `peer` can take now and send within one iteration's computation.

        Queued bytes are subtracted, or else the queue of a link that was once overestimated would never drain; of the
        message being sent, the bytes that should not have been sent by now. Zero before the first measurement. Waiting
        is no part of the iteration time: budgets would grow with the waits that they cause.
        """
        if self._compute_seconds is None or peer not in self._carried:
            return 0.0
        bandwidth, queue = self._bandwidth(peer), self._queues.get(peer, [])
        leaving = min(queue[0], bandwidth * (now - self._begun[peer])) if queue else 0.0
        return max(0.0, bandwidth * self._compute_seconds - sum(queue) + leaving)

    def carried(self, peers: Sequence[int]) -> list[float]:
        """Bytes that the link to each peer carries while one gradient is computed; empty unless all are known."""
        if self._compute_seconds is None or any(peer not in self._carried for peer in peers):
            return []
        return [self._bandwidth(peer) * self._compute_seconds for peer in peers]

    def _bandwidth(self, peer: int) -> float:
        """Bytes per second."""
        size, seconds = self._carried[peer]
        return size / seconds
