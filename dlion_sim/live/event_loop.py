"""A node's event loop, with timers as exact as the system's, and what ends it early."""

from __future__ import annotations

import asyncio
import select
import selectors
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from dlion_sim.interrupts import Interrupts

T = TypeVar("T")
_STANDARD_INPUT = 0


def run(task: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, but an error of what the loop calls back ends it, too."""
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(ExactSelector())) as runner:
        return runner.run(_unless_a_callback_fails(task))


async def _unless_a_callback_fails(task: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.get_running_loop()
    running = loop.create_task(task)
    errors: list[BaseException] = []

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "handle" in context:  # It belongs to a callback.
            errors.append(context["exception"])
            running.cancel()
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
    try:
        return await running
    finally:
        if errors:
            raise errors[0] from None


class ExactSelector(selectors.DefaultSelector):
    """Waits exactly, and not until the next whole millisecond, as `epoll` does.

    That would delay each message that is held back for its link's delay by half a millisecond on average.
    """

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready, within so many seconds; None: as soon as something is."""
        if timeout is not None and timeout > 0:
            select.select([self], [], [], timeout)
            timeout = 0
        return super().select(timeout)


def watch(
    end: Callable[[], None], interrupts: Interrupts, *, attached: bool, leave: Callable[[], None] | None = None
) -> None:
    """Have the running loop call `end` on Ctrl-C, SIGTERM or, if attached, at the end of standard input.

    That ends when the starting process wants this node to end, or is gone. SIGTERM calls `leave` instead, if given.
    """
    loop = asyncio.get_running_loop()

    def asked() -> None:
        if not loop.is_closed():
            terminates = interrupts.number == signal.SIGTERM
            loop.call_soon_threadsafe(leave if leave and terminates else end)

    def abandoned() -> None:
        loop.remove_reader(_STANDARD_INPUT)
        end()

    interrupts.call(asked)
    if attached:
        loop.add_reader(_STANDARD_INPUT, abandoned)


def first(error: BaseException) -> BaseException:
    """The first of the errors in a group; others follow from it."""
    return first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
