"""Ending a run gracefully on Ctrl-C or a request to terminate."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While entered, the first signal is only noted; a second one has its usual effect."""

    def __init__(self) -> None:
        self.number: int | None = None
        """The signal that came first, if one did."""
        self._tell: Callable[[], None] = lambda: None

    def asked(self) -> bool:
        """Whether an end was asked for."""
        return self.number is not None

    def call(self, tell: Callable[[], None]) -> None:
        """Have `tell` called from the signal's handler, or at once if an end was asked for already."""
        self._tell = tell
        if self.asked():
            tell()

    def __enter__(self) -> Self:
        self._former = {number: signal.signal(number, self._note) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self._restore()
        self._tell()

    def _restore(self) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)
