"""Whether something will take so long that its user should know at once."""

from __future__ import annotations

import time
from collections.abc import Callable

_WINDOW_SECONDS = 15.0
"""Of wall time, over which a pace is one."""
_WINDOWS = 3
_LONG_SECONDS = 1800.0


class Pace:
    """Tells once, and early, what is left of `total` where that will take more than half an hour of wall time.

    Several windows in a row must say so, as what happens once, compiling above all, makes single ones slow. `clock` is
    in seconds.
    """

    def __init__(self, total: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._total = total
        self._clock = clock
        self._began: tuple[float, float] | None = None
        self._slow = 0
        """Windows in a row."""
        self._told = False

    def seconds_left(self, done: float) -> float | None:
        """What is left at the present pace, if that is now to be told; `done` may begin anywhere."""
        now = self._clock()
        if self._began is None:
            self._began = now, done
        began, before = self._began
        if self._told or now - began < _WINDOW_SECONDS or done <= before:
            return None
        self._began = now, done
        left = (self._total - done) * (now - began) / (done - before)
        self._slow = self._slow + 1 if left > _LONG_SECONDS else 0
        self._told = self._slow == _WINDOWS
        return left if self._told else None


def in_words(seconds: float) -> str:
    """E.g. "20 s", "45 min", "3.2 h" or "2.5 days"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours = seconds / 3600
    return f"{60 * hours:.0f} min" if hours < 1.5 else f"{hours:.2g} h" if hours < 48 else f"{hours / 24:.2g} days"
