"""What a worker knows of its outgoing links: how fast they are, and how much is still queued on each."""

from __future__ import annotations

from collections import defaultdict


class LinkMonitor:
    """Moving averages of the bandwidth achieved on each link, and of the time an iteration's computation takes.

    With an oracle, bandwidths are those that it tells, and not measured.
    """

    def __init__(self, smoothing: float, *, oracle: bool = False) -> None:
        self._smoothing = smoothing
        self._oracle = oracle
        self._bandwidth: dict[int, float] = {}
        self._backlog: defaultdict[int, int] = defaultdict(int)
        self._compute_seconds: float | None = None

    def queued(self, peer: int, size: int) -> None:
        """`size` bytes were queued to `peer`."""
        self._backlog[peer] += size

    def sent(self, peer: int, size: int, seconds: float) -> None:
        """`size` bytes have left for `peer` within `seconds`."""
        self._backlog[peer] -= size
        if seconds > 0 and not self._oracle:
            self._bandwidth[peer] = self._averaged(self._bandwidth.get(peer), size / seconds)

    def lost(self, peer: int) -> None:
        """The link to `peer` is gone."""
        self._bandwidth.pop(peer, None)
        self._backlog.pop(peer, None)

    def told(self, peer: int, bandwidth: float) -> None:
        """The link to `peer` has this bandwidth (bytes per second)."""
        self._bandwidth[peer] = bandwidth

    def computed(self, seconds: float) -> None:
        """An iteration's computation took `seconds`."""
        self._compute_seconds = self._averaged(self._compute_seconds, seconds)

    def budget(self, peer: int) -> float:
        """Bytes that the link to `peer` can take now so that they have left within one iteration's computation.

        What is still queued is taken off, or else the queue of a link that was overrated once would never drain. Zero
        before anything was sent. Waiting does not count as iteration time: budgets would grow with the waits that they
        cause.
        """
        if self._compute_seconds is None:
            return 0.0
        return max(0.0, self._bandwidth.get(peer, 0.0) * self._compute_seconds - self._backlog[peer])

    def carried_by_all(self) -> float:
        """Bytes that all links together carry while one gradient is computed; zero before anything was sent."""
        return sum(self._bandwidth.values()) * (self._compute_seconds or 0.0)

    def _averaged(self, average: float | None, value: float) -> float:
        return value if average is None else average + self._smoothing * (value - average)
