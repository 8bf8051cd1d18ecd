"""What a worker knows of its peers and its links to them: how fast they are, and how much is queued on each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from dlion_sim.protocol.faults import LocalProtocolError

Source = Literal["measured", "oracle_pair", "oracle_share"]


class LinkMonitor:
    """The peers that are not lost; averages of the bandwidth of the link to each, and of a computation's time.

    A bandwidth is the average size of messages over their average time. Messages shorter than the average, whose times
    tell less, count for less. The worker keeps it; any of its choices may read it, and the exchange says by `follow`
    how bandwidths are to be found.
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
        """The sizes of the messages to a peer that have not left whole, if there are any."""
        self._begun: dict[int, float] = {}
        """When the first of them began to leave."""
        self._compute_seconds: float | None = None

    def follow(self, source: Source, smoothing: float) -> None:
        """Bandwidths are as measured, with `smoothing` the weight of the newest value in the averages; or, in
        simulations, what an oracle tells: those of a pair's path alone, or shared with all other links at once.
        """
        self._source, self._smoothing = source, smoothing

    def queued(self, peer: int, size: int, now: float) -> None:
        """`size` bytes are queued to `peer`."""
        self._queues.setdefault(peer, []).append(size)
        self._begun.setdefault(peer, now)

    def sent(self, peer: int, now: float) -> None:
        """What was queued first to `peer` has left. Raises LocalProtocolError if nothing was."""
        if peer not in self._queues:
            raise LocalProtocolError(f"a message to {peer} has left that was not sent")
        del self._queues[peer][0]
        if self._queues[peer]:
            self._begun[peer] = now
        else:
            del self._queues[peer], self._begun[peer]

    def timed(self, peer: int, size: int, seconds: float) -> None:
        """`size` bytes took `seconds` to `peer`."""
        if seconds > 0 and self._source == "measured":
            of_sizes, of_seconds = self._carried.get(peer, (size, seconds))
            weight = self._smoothing * min(1.0, size / of_sizes)
            self._carried[peer] = of_sizes + weight * (size - of_sizes), of_seconds + weight * (seconds - of_seconds)

    def lost(self, peer: int) -> None:
        """`peer` is gone, and the link to it."""
        self._connected.discard(peer)
        self.peers = tuple(each for each in self.peers if each != peer)
        for of_peers in (self._carried, self._queues, self._begun):
            of_peers.pop(peer, None)

    def found(self, peer: int) -> None:
        """There is a link to `peer`, of which nothing is known."""
        self._connected.add(peer)
        self.peers = tuple(each for each in self._neighbours if each in self._connected)

    def is_connected(self, peer: int) -> bool:
        """Whether `peer` is among the peers."""
        return peer in self._connected

    def told(self, peer: int, alone: float, shared: float) -> None:
        """The oracle's word: what the link to `peer` could carry (bytes per second), see `LinkCapacity`."""
        if self._source != "measured":
            self._carried[peer] = alone if self._source == "oracle_pair" else shared, 1.0

    def messages(self, peer: int) -> int:
        """How many that were queued to `peer` have not left whole."""
        return len(self._queues.get(peer, ()))

    def is_busy(self, peer: int) -> bool:
        """Whether there is any such message."""
        return peer in self._queues

    @property
    def waiting(self) -> int:
        """Bytes of all messages that have not left whole."""
        return sum(map(sum, self._queues.values()))

    @property
    def compute_seconds(self) -> float | None:
        """How long an iteration's computation takes on average; None before the first."""
        return self._compute_seconds

    def computed(self, seconds: float) -> None:
        """An iteration's computation took `seconds`."""
        average = self._compute_seconds
        self._compute_seconds = seconds if average is None else average + self._smoothing * (seconds - average)

    def budget(self, peer: int, now: float) -> float:
        """Bytes that the link to `peer` can take now so that they have left within one iteration's computation.

        What is still queued is taken off, or else the queue of a link that was overrated once would never drain; of the
        message that is leaving, what should not have left yet. Zero before anything was sent. Waiting does not count as
        iteration time: budgets would grow with the waits that they cause.
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
