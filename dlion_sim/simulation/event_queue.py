"""The event queue of virtual time: SimPy's clock and queue, with a state that can be saved."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf

import simpy

Call = Callable[[], None]


class Background:
    """A call that does not keep the run going."""

    def __init__(self, call: Call) -> None:
        self.call = call


_Planned = dict[float, list[Call | Background]]
"""Calls by time."""


class _Instant(simpy.Event):
    """An event that may be scheduled any number of times."""

    def __init__(self, env: simpy.Environment, callback: Callable[[simpy.Event], None]) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        self.always = [callback]
        """Its callbacks, to be set again after each time."""
        self.callbacks = self.always


class EventQueue:
    """Calls scheduled in virtual time (seconds); those of one instant happen in the order in which they were scheduled.

    SimPy's queue has instants; the calls of each are in a list here. So the event queue can be saved if the calls can,
    which SimPy's processes, being generators, cannot.
    """

    def __init__(self) -> None:
        self.now = 0.0
        """Virtual seconds since the start."""
        self._env = simpy.Environment(self.now)
        self._instant = _Instant(self._env, self._begin)
        self._planned: _Planned = {}
        """Calls of future instants."""
        self._due: deque[Call | Background] = deque()
        """The remaining calls of the present instant."""
        self._late: deque[Call] = deque()
        """Calls after these."""
        self._foreground = 0
        """The number of calls that are not in the background."""

    @property
    def next_time(self) -> float:
        """The time of the next call; infinite if there is none."""
        return self.now if self._due or self._late else self._env.peek()

    @property
    def is_idle(self) -> bool:
        return not self._foreground

    def after(self, seconds: float, call: Call, *, background: bool = False) -> None:
        """Schedule a call after so many seconds; never, if infinite. It cannot be cancelled.

        Calls in the `background` do not keep the run going: see `is_idle`.
        """
        time = self.now + seconds
        if time == inf:
            return
        planned = Background(call) if background else call
        self._foreground += not background
        same_instant = self._planned.get(time)
        if same_instant is not None:
            same_instant.append(planned)
        else:
            self._planned[time] = [planned]
            self._env.schedule(self._instant, delay=seconds)

    def late(self, call: Call) -> None:
        """Schedule a call at the end of the present instant."""
        self._late.append(call)
        self._foreground += 1

    def step(self) -> None:
        """Make the next call, and late calls if it was the last one of its instant."""
        due, late = self._due, self._late
        if not due and not (late and self._is_over()):
            self._env.step()
        if due:
            planned = due.popleft()
            if isinstance(planned, Background):
                planned.call()
            else:
                self._foreground -= 1
                planned()
        while late and not due and self._is_over():
            self._foreground -= 1
            late.popleft()()

    def _is_over(self) -> bool:
        """Whether only late calls are left of the present instant."""
        return not self._due and self._env.peek() > self.now

    def advance(self, time: float) -> None:
        """Advance to `time`, before which no call is scheduled."""
        if time > self.now:
            pause = self._env.timeout(time - self.now)
            while not pause.processed:
                self._env.step()
            self.now = self._env.now

    def _begin(self, _: simpy.Event) -> None:
        self._instant.callbacks = self._instant.always
        self.now = now = self._env.now
        self._due += self._planned.pop(now)

    def __getstate__(self) -> tuple[float, _Planned, deque[Call | Background], deque[Call], int]:
        return self.now, self._planned, self._due, self._late, self._foreground

    def __setstate__(self, state: tuple[float, _Planned, deque[Call | Background], deque[Call], int]) -> None:
        self.__init__()  # type: ignore[misc]
        now, self._planned, self._due, self._late, self._foreground = state
        # From time 0, where a delay equals the time, without rounding.
        for time in self._planned:
            self._env.schedule(self._instant, delay=time)
        self.advance(now)
