"""Whether something will take so long that its user should know at once."""

from __future__ import annotations

import time
from collections.abc import Callable

_FIRST_SECONDS = 15.0
"""Of wall time, until a pace is one."""
_LONG_SECONDS = 1800.0


class Pace:
    """Tells once, and early, what is left of `total` where that will take more than half an hour of wall time.

    `clock` is in seconds.
    """

    def __init__(self, total: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._total = total
        self._clock = clock
        self._began: tuple[float, float] | None = None
        self._told = False

    def seconds_left(self, done: float) -> float | None:
        """What is left at the pace so far, if that is now to be told; `done` may begin anywhere."""
        now = self._clock()
        if self._began is None or done <= self._began[1]:
            self._began = now, done  # What takes time before there is progress happens once.
        began, before = self._began
        if self._told or now - began < _FIRST_SECONDS:
            return None
        self._told = True
        left = (self._total - done) * (now - began) / (done - before)
        return left if left > _LONG_SECONDS else None


def in_words(seconds: float) -> str:
    """E.g. "45 min", "3.2 h" or "2.5 days"."""
    hours = seconds / 3600
    return f"{60 * hours:.0f} min" if hours < 1.5 else f"{hours:.2g} h" if hours < 48 else f"{hours / 24:.2g} days"
