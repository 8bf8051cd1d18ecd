"""What is to be done at certain times of a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from dlion_sim.live.clock import Clock

Planned = tuple[float, Callable[[], object]]
"""When something is to be done, in seconds since the run's start, and what."""


class Timetable:
    """Does what is planned, each at its time and in a thread of its own, until the end of the block.

    What goes wrong meanwhile is raised at the end of the block.
    """

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self.next_time: float | None = None
        """When the first thing is planned that is not done; None where there is none."""
        self.most_seconds_late = 0.0
        """Of all, until it was done."""

    def follow(self, clock: Clock, plan: Iterator[Planned]) -> None:
        """Do what `plan` says, in order, by this clock; it need not end."""
        first = next(plan, None)
        if first is not None:
            self.next_time = first[0]
            self._thread = threading.Thread(target=self._do_all, args=(clock, first, plan), name="timetable")
            self._thread.start()

    def __enter__(self) -> Timetable:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
        if self._error and kind is None:
            raise self._error

    def _do_all(self, clock: Clock, planned: Planned | None, plan: Iterator[Planned]) -> None:
        began = clock.wait()
        try:
            while began is not None and planned is not None:
                at, do = planned
                if self._stop.wait(max(0.0, began + at - time.monotonic())):
                    return
                do()
                self.most_seconds_late = max(self.most_seconds_late, time.monotonic() - began - at)
                planned = next(plan, None)
                self.next_time = planned[0] if planned else None
        except Exception as error:
            self._error = error
