"""What happens when, in virtual time: SimPy's clock and queue, as state that can be saved."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

import simpy
from simpy.events import EventPriority

_FIRST = EventPriority(0)
_NORMAL = EventPriority(1)
_LATE = EventPriority(2)

_Plan = tuple[float, EventPriority, Callable[[], None], bool]
"""When, how late in that instant, what, and whether in the background."""


class _Planned(simpy.Event):
    """An event that is certain to happen, after `delay` seconds."""

    def __init__(
        self, env: simpy.Environment, delay: float, priority: EventPriority, callback: Callable[[simpy.Event], None]
    ) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        self.callbacks = [callback]
        env.schedule(self, priority, delay)


class Agenda:
    """Calls planned in virtual time (seconds); those of one instant happen in the order in which they were planned.

    It can be pickled if the calls can, and goes on to the bit: SimPy's processes, which are generators, could not be.
    """

    def __init__(self) -> None:
        self._env = simpy.Environment()
        self._planned: dict[int, _Plan] = {}
        self._in_background = 0
        self._numbers = count()

    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
        return float(self._env.now)

    @property
    def next_time(self) -> float:
        """Of the next call; infinite if there is none."""
        return float(self._env.peek())

    @property
    def is_idle(self) -> bool:
        """Whether all that is planned is in the background."""
        return len(self._planned) == self._in_background

    def after(self, seconds: float, call: Callable[[], None], *, background: bool = False) -> None:
        """Call after so many seconds; never, where they are infinite. What was planned can't be taken back.

        Calls in the `background` come whether or not anything else goes on, and are no sign that it does.
        """
        if seconds < float("inf"):
            self._plan(seconds, _NORMAL, call, background)

    def late(self, call: Callable[[], None]) -> None:
        """Call in this instant, after everything else of it."""
        self._plan(0.0, _LATE, call, False)

    def step(self) -> None:
        """Make the next call."""
        self._env.step()

    def advance(self, time: float) -> None:
        """Let time pass until `time`, before which nothing is planned."""
        if time > self._env.now:
            _Planned(self._env, time - self._env.now, _FIRST, lambda _: None)
            self._env.step()

    def _plan(self, delay: float, priority: EventPriority, call: Callable[[], None], background: bool) -> None:
        number = next(self._numbers)
        self._planned[number] = self._env.now + delay, priority, call, background
        self._in_background += background
        _Planned(self._env, delay, priority, partial(self._happen, number))

    def _happen(self, number: int, _: simpy.Event) -> None:
        *_when, call, background = self._planned.pop(number)
        self._in_background -= background
        call()

    def __getstate__(self) -> tuple[float, list[_Plan]]:
        return self.now, list(self._planned.values())

    def __setstate__(self, state: tuple[float, list[_Plan]]) -> None:
        now, plans = state
        self.__init__()  # type: ignore[misc]
        # From time 0, as that is where a delay is the time itself, without rounding.
        for plan in plans:
            self._plan(*plan)
        self.advance(now)
