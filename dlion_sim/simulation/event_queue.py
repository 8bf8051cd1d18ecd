"""What happens when, in virtual time: SimPy's clock and queue, as state that can be saved."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf

import simpy

Call = Callable[[], None]


class Background:
    """A call that is no sign that anything goes on."""

    def __init__(self, call: Call) -> None:
        self.call = call


_Planned = dict[float, list[Call | Background]]
"""By their instants."""


class _Instant(simpy.Event):
    """An event that is certain to happen. It may be scheduled any number of times, and happens as often."""

    def __init__(self, env: simpy.Environment, callback: Callable[[simpy.Event], None]) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        self.always = [callback]
        """To be its callbacks again once it has happened."""
        self.callbacks = self.always


class EventQueue:
    """Calls planned in virtual time (seconds); those of one instant happen in the order in which they were planned.

    SimPy's queue holds instants, and what is to happen in each is a list here. The event queue can be pickled if the
    calls can, and goes on to the bit: SimPy's processes, which are generators, could not be.
    """

    def __init__(self) -> None:
        self.now = 0.0
        """Virtual seconds since the start."""
        self._env = simpy.Environment(self.now)
        self._instant = _Instant(self._env, self._begin)
        self._planned: _Planned = {}
        """By their instant, which SimPy has still to come to."""
        self._due: deque[Call | Background] = deque()
        """What is left of the present instant."""
        self._late: deque[Call] = deque()
        """What is to come after that."""
        self._foreground = 0
        """How many calls of all these are not in the background."""

    @property
    def next_time(self) -> float:
        """Of the next call; infinite if there is none."""
        return self.now if self._due or self._late else self._env.peek()

    @property
    def is_idle(self) -> bool:
        """Whether all that is planned is in the background."""
        return not self._foreground

    def after(self, seconds: float, call: Call, *, background: bool = False) -> None:
        """Call after so many seconds; never, where they are infinite. What was planned can't be taken back.

        Calls in the `background` come whether or not anything else goes on, and are no sign that it does.
        """
        time = self.now + seconds
        if time == inf:
            return
        planned = Background(call) if background else call
        self._foreground += not background
        alike = self._planned.get(time)
        if alike is not None:
            alike.append(planned)
        else:
            self._planned[time] = [planned]
            self._env.schedule(self._instant, delay=seconds)

    def late(self, call: Call) -> None:
        """Call in this instant, after everything else of it."""
        self._late.append(call)
        self._foreground += 1

    def step(self) -> None:
        """Make the next call; if it was the last one of its instant, those too that were to be late."""
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
        """Whether nothing but late calls is left of the present instant."""
        return not self._due and self._env.peek() > self.now

    def advance(self, time: float) -> None:
        """Let time pass until `time`, before which nothing is planned."""
        if time > self.now:
            pause = self._env.timeout(time - self.now)
            while not pause.processed:
                self._env.step()
            self.now = self._env.now

    def _begin(self, _: simpy.Event) -> None:
        """SimPy has come to an instant."""
        self._instant.callbacks = self._instant.always
        self.now = now = self._env.now
        self._due += self._planned.pop(now)

    def __getstate__(self) -> tuple[float, _Planned, deque[Call | Background], deque[Call], int]:
        return self.now, self._planned, self._due, self._late, self._foreground

    def __setstate__(self, state: tuple[float, _Planned, deque[Call | Background], deque[Call], int]) -> None:
        self.__init__()  # type: ignore[misc]
        now, self._planned, self._due, self._late, self._foreground = state
        # From time 0, as that is where a delay is the time itself, without rounding.
        for time in self._planned:
            self._env.schedule(self._instant, delay=time)
        self.advance(now)
