"""What ends a node early, and why."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from dlion_sim.interrupts import Interrupts

_STANDARD_INPUT = 0


def watch(
    end: Callable[[], None], interrupts: Interrupts, *, attached: bool, leave: Callable[[], None] | None = None
) -> None:
    """Have the running loop call `end` on Ctrl-C, a request to terminate or, if attached, when standard input ends.

    That is when whoever started this node wants it to end, or is gone. A request to terminate calls `leave` instead, if
    there is that.
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
