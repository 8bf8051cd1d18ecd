"""Capacities that change while nodes run."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

from dlion_sim.live import Clock


class Capacity(Protocol):
    """What a link carries or a processor computes."""

    def changes(self) -> Iterator[tuple[float, float]]:
        """(seconds since the start, value from then on); without end if it repeats."""

    def set(self, value: float, /) -> None:
        """Change it from now on."""


class Changes:
    """Changes capacities at their times, until the end of the block.

    What goes wrong meanwhile is raised at the end of the block.
    """

    def __init__(self, capacities: Sequence[Capacity]) -> None:
        self._capacities = capacities
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self.most_seconds_late = 0.0
        """Of all changes, until they were made."""

    def follow(self, clock: Clock) -> None:
        """The times are those of this clock, from now on."""
        self._thread = threading.Thread(target=self._make_all, args=(clock,), name="changes")
        self._thread.start()

    def __enter__(self) -> Changes:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
        if self._error and kind is None:
            raise self._error

    def _make_all(self, clock: Clock) -> None:
        began = clock.wait()
        if began is None:
            return
        try:
            for at, capacity, value in in_order(self._capacities):
                if self._stop.wait(max(0.0, began + at - time.monotonic())):
                    return
                capacity.set(value)
                self.most_seconds_late = max(self.most_seconds_late, time.monotonic() - began - at)
        except Exception as error:
            self._error = error


def in_order(capacities: Sequence[Capacity]) -> Iterator[tuple[float, Capacity, float]]:
    """(seconds since the start, capacity, its value from then on) of all changes; without end if one's are."""
    return heapq.merge(*map(_changes, capacities), key=lambda change: change[0])


def _changes(capacity: Capacity) -> Iterator[tuple[float, Capacity, float]]:
    for at, value in capacity.changes():
        yield at, capacity, value
