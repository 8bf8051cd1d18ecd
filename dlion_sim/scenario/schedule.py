"""Schedules: piecewise constant capacities over virtual time, of links (bit/s), machines (cores) and arrivals
(samples/s)."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count, pairwise, takewhile
from operator import itemgetter
from typing import Self

from dlion_sim.scenario.units import DURATION

_LEAST_STEP = 0.001
"""Minimum mean length of the steps of a repeating schedule, in seconds."""
_MOST_STEPS = 1_000_000
"""The most steps of an interrupted schedule."""


@dataclass(frozen=True)
class Schedule:
    """Capacity from each step's time until the next step's; the last one applies until the end, or until it repeats.

    The unit depends on its use: bits per second, cores, or samples per second.

    Raises:
        ValueError: The steps don't start at 0, don't increase in time, start with an outage or hold a capacity that
            is negative or not finite; or the period ends before the last step.
    """

    steps: tuple[tuple[float, float], ...]
    """(time in seconds, capacity) in the order of time. Capacity 0 is an outage."""
    repeat: float | None = None
    """Period in seconds after which the steps repeat; None: they do not."""

    def __post_init__(self) -> None:
        times = [time for time, _ in self.steps]
        if not times or times[0] != 0:
            raise ValueError("the first step of a schedule must be at 0 s")
        for earlier, later in pairwise(times):
            if not later > earlier:
                late, early = DURATION.format(later), DURATION.format(earlier)
                raise ValueError(f"the times of a schedule must increase, but {late} comes after {early}")
        if not all(0 <= value < math.inf for _, value in self.steps):
            raise ValueError("the capacities of a schedule must be finite and 0 or more")
        if self.steps[0][1] == 0:
            raise ValueError("a schedule must not start with an outage: its capacity at 0 s must be more than 0")
        if self.repeat is not None and not times[-1] < self.repeat < math.inf:
            last = DURATION.format(times[-1])
            raise ValueError(f"a schedule must repeat after its last step, which is at {last}")
        if self.repeat is not None and self.repeat < len(times) * _LEAST_STEP:
            least = DURATION.format(len(times) * _LEAST_STEP)
            raise ValueError(f"a schedule of {len(times)} steps must not repeat within less than {least}")

    @classmethod
    def constant(cls, value: float) -> Self:
        """A capacity that never changes."""
        return cls(((0.0, value),))

    @property
    def is_constant(self) -> bool:
        """Whether the capacity is the same at all times."""
        return all(value == self.steps[0][1] for _, value in self.steps)

    def value_at(self, time_s: float) -> float:
        """Capacity at a time >= 0, in the schedule's unit."""
        return self.steps[self._step_at(time_s if self.repeat is None else time_s % self.repeat)][1]

    def change(self, number: int) -> tuple[float, float] | None:
        """The step that is the `number`-th after time 0, from 1 on, as (time in seconds, capacity from then on)."""
        period, step = divmod(number, len(self.steps))
        if self.is_constant or (period and self.repeat is None):
            return None
        time, value = self.steps[step]
        return (time, value) if self.repeat is None else (period * self.repeat + time, value)

    def changes(self) -> Iterator[tuple[float, float]]:
        """The steps after time 0, see `change`; without end if the schedule repeats."""
        numbers = count(1)
        while (step := self.change(next(numbers))) is not None:
            yield step

    def interrupted(self, outages: Iterable[tuple[float, float]], until_s: float) -> Self:
        """With capacity 0 in the outages, (begin, end) in order and disjoint, up to `until_s`.

        Raises ValueError if it changes too often, or starts with an outage.
        """
        changes = ((time, value, None) for time, value in self.changes())
        edges = chain.from_iterable(((begin, None, True), (end, None, False)) for begin, end in outages)
        both: Iterator[tuple[float, float | None, bool | None]] = heapq.merge(changes, edges, key=itemgetter(0))
        value, is_down = self.value_at(0), False
        steps = {0.0: value}
        for time, changed, down in takewhile(lambda each: each[0] < until_s, both):
            value, is_down = value if changed is None else changed, is_down if down is None else down
            steps[time] = 0.0 if is_down else value
            if len(steps) > _MOST_STEPS:
                raise ValueError(f"it changes more than {_MOST_STEPS} times")
        return type(self)(tuple(steps.items()))

    def mean(self, end_s: float) -> float:
        """The mean from time 0 to `end_s` > 0, in the schedule's unit."""
        total, since, value = 0.0, 0.0, self.steps[0][1]
        for time, next_value in self.changes():
            if time >= end_s:
                break
            total += (time - since) * value
            since, value = time, next_value
        return (total + (end_s - since) * value) / end_s

    def finish_time(self, start_s: float, work: float) -> float:
        """The time at which `work` (capacity x seconds: bits, or core-seconds) started at `start_s` >= 0 is done.

        The first time at which the integral of the capacity since the start reaches `work`, or infinity.
        """
        if self.is_constant:
            return start_s + work / self.steps[0][1]
        if work <= 0:
            return start_s
        within = start_s if self.repeat is None else start_s % self.repeat
        period_start = start_s - within
        while True:
            for begin, end, value in self._pieces(within):
                if value > 0:
                    if work <= value * (end - begin):
                        return period_start + begin + work / value
                    work -= value * (end - begin)
            if self.repeat is None:
                return math.inf
            a_period = sum(value * (end - begin) for begin, end, value in self._pieces(0.0))
            # The last period is walked even if all of it is needed: it may end with an outage.
            skipped = max(math.ceil(work / a_period) - 1, 0)
            work = max(work - skipped * a_period, 0.0)
            period_start += (1 + skipped) * self.repeat
            within = 0.0

    def _step_at(self, within: float) -> int:
        return bisect_right(self.steps, within, key=itemgetter(0)) - 1

    def _pieces(self, within: float) -> Iterator[tuple[float, float, float]]:
        """(begin, end, capacity) from the time `within` the first period on, until the period's end."""
        final = math.inf if self.repeat is None else self.repeat
        for number in range(self._step_at(within), len(self.steps)):
            begin, value = self.steps[number]
            end = self.steps[number + 1][0] if number + 1 < len(self.steps) else final
            yield max(begin, within), end, value
