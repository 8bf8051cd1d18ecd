"""Capacities that change while nodes run."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO

from dlion_sim.emulation.link import Link


class Changes:
    """Changes the links' capacities at their times, until the end of the block.

    What goes wrong meanwhile is raised at the end of the block.
    """

    def __init__(self, links: Sequence[Link]) -> None:
        self._links = links
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self.most_seconds_late = 0.0
        """Of all changes, until `tc` had made them."""

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
            for at, link, bps in in_order(self._links):
                if self._stop.wait(max(0.0, began + at - time.monotonic())):
                    return
                link.set(bps)
                self.most_seconds_late = max(self.most_seconds_late, time.monotonic() - began - at)
        except Exception as error:
            self._error = error


def in_order(links: Sequence[Link]) -> Iterator[tuple[float, Link, float]]:
    """(seconds since the start, link, bits per second from then on) of all changes; without end if a link's are."""
    return heapq.merge(*map(_changes, links), key=lambda change: change[0])


def _changes(link: Link) -> Iterator[tuple[float, Link, float]]:
    for at, bps in link.capacity.changes() if link.capacity else ():
        yield at, link, bps
