"""Actions at planned times of a run whose nodes are other processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, Self

Planned = tuple[float, Callable[[], object]]
"""A time in seconds since the run's start, and an action."""


class Clock:
    """A run's clock: runs from the time on at which a node writes this `line` to `output`."""

    def __init__(self, output: IO[bytes], line: str) -> None:
        self._output = output
        self._line = line
        self._began: float | None = None
        self._heard = threading.Event()
        threading.Thread(target=self._listen, name="clock", daemon=True).start()

    @property
    def seconds(self) -> float | None:
        """Since the run began; None before."""
        return None if self._began is None else time.monotonic() - self._began

    def wait(self) -> float | None:
        """Wait until the run begins, and return when, by `time.monotonic`; None if the node ends before."""
        self._heard.wait()
        return self._began

    def _listen(self) -> None:
        with suppress(ValueError):  # It is closed, perhaps meanwhile.
            if wait_for(self._output, self._line):
                self._began = time.monotonic()
        self._heard.set()


def wait_for(output: IO[bytes], line: str) -> bool:
    """Wait until a process has written this line to `output`; False if it ends before."""
    return any(each.rstrip(b"\n") == line.encode() for each in output)


class Timetable:
    """Runs actions at their times, in a thread of its own, until the end of the block, which raises their error."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self.next_time: float | None = None
        """The time of the next action; None if there is none, or no more are done."""
        self.most_seconds_late = 0.0
        """Of all actions, until they were done."""

    def follow(self, clock: Clock, plan: Iterator[Planned]) -> None:
        """Run the actions of `plan`, in order, by this clock; it need not end."""
        first = next(plan, None)
        if first is not None:
            self.next_time = first[0]
            self._thread = threading.Thread(target=self._do_all, args=(clock, first, plan), name="timetable")
            self._thread.start()

    def __enter__(self) -> Self:
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
        finally:
            self.next_time = None
