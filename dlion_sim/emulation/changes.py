"""Capacities that change while nodes run."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO, Protocol


class Changing(Protocol):
    """What has a capacity that changes: a link, or a processor."""

    def changes(self) -> Iterator[tuple[float, float]]:
        """(seconds since the start, capacity from then on); without end if it repeats."""

    def set(self, capacity: float, /) -> None:
        """Change the capacity from now on."""


class Changes:
    """Changes capacities at their times, until the end of the block.

    What goes wrong meanwhile is raised at the end of the block.
    """

    def __init__(self, all_changing: Sequence[Changing]) -> None:
        self._all_changing = all_changing
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self.most_seconds_late = 0.0
        """Of all changes, until they were made."""

    def follow(self, begun: IO[bytes]) -> None:
        """The run begins when there is a line; it never does if there is an end instead."""
        self._thread = threading.Thread(target=self._make_all, args=(begun,), name="changes")
        self._thread.start()

    def __enter__(self) -> Changes:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
        if self._error and kind is None:
            raise self._error

    def _make_all(self, begun: IO[bytes]) -> None:
        if not begun.readline():
            return
        began = time.monotonic()
        try:
            for at, changing, capacity in in_order(self._all_changing):
                if self._stop.wait(max(0.0, began + at - time.monotonic())):
                    return
                changing.set(capacity)
                self.most_seconds_late = max(self.most_seconds_late, time.monotonic() - began - at)
        except Exception as error:
            self._error = error


def in_order(all_changing: Sequence[Changing]) -> Iterator[tuple[float, Changing, float]]:
    """(seconds since the start, what changes, its capacity from then on); without end if a schedule is."""
    return heapq.merge(*map(_changes, all_changing), key=lambda change: change[0])


def _changes(changing: Changing) -> Iterator[tuple[float, Changing, float]]:
    for at, capacity in changing.changes():
        yield at, changing, capacity
