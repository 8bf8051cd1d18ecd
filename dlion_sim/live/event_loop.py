"""An event loop whose timers are as exact as the system's."""

from __future__ import annotations

import asyncio
import select
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(task: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`."""
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(ExactSelector())) as runner:
        return runner.run(task)


class ExactSelector(selectors.DefaultSelector):
    """Waits for as long as it is told to, and not until the next whole millisecond, as `epoll` does.

    By that, half a millisecond on average, each message would come later that is held back for its link's delay.
    """

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready, within so many seconds; None: as soon as something is."""
        if timeout is not None and timeout > 0:
            select.select([self], [], [], timeout)
            timeout = 0
        return super().select(timeout)
