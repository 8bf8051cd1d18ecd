"""What a run shows until some virtual time, and the estimate of what the target takes that follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dlion_sim.analysis.cost import costs_until
from dlion_sim.analysis.curves import mean_metric
from dlion_sim.analysis.statistics import Duration
from dlion_sim.analysis.traffic import sent_until
from dlion_sim.results import Run
from dlion_sim.results.cost import billed_hours

_RECENT_PART = 0.5
"""Last share of the time for which the slope is computed separately."""


@dataclass(frozen=True)
class Curve:
    """The best progress up to each evaluation: 0 at the start, 1 or more once the target is reached."""

    times: npt.NDArray[np.float64]
    """Virtual seconds, from 0."""
    progress: npt.NDArray[np.float64]

    @property
    def last(self) -> float:
        """The final progress."""
        return float(self.progress[-1])

    @property
    def is_known(self) -> bool:
        """Whether there is an evaluation after the start."""
        return len(self.times) > 1

    def seconds_to(self, progress: float) -> float:
        """The time of some progress, linearly interpolated; infinite if it is not reached."""
        if progress > self.last:
            return math.inf
        place = int(np.searchsorted(self.progress, progress))
        if not place:
            return float(self.times[0])
        since, until = self.progress[place - 1 : place + 1]
        begin, end = self.times[place - 1 : place + 1]
        return float(begin + (end - begin) * (progress - since) / (until - since))

    @property
    def lower_bound_seconds(self) -> float:
        """Time of the target at the mean slope, or the recent one if that is steeper; infinite without progress.

        It is a lower bound, as learning slows down.
        """
        end = float(self.times[-1])
        if self.last >= 1:
            return self.seconds_to(1.0)
        if self.last <= 0:
            return math.inf
        late = np.interp((1 - _RECENT_PART) * end, self.times, self.progress)
        steepest = max(self.last, (self.last - late) / _RECENT_PART) / end
        return float(end + (1 - self.last) / steepest)


@dataclass(frozen=True)
class Observed:
    """Observation of a run up to a virtual time."""

    run: Run
    until: float
    """That time (s), or the end of the run if earlier."""
    curve: Curve
    reached: float | None
    """The virtual time (s) of the first evaluation that is as good as the target."""
    problem: str
    """Why the run cannot reach the target; else empty."""

    @classmethod
    def of(cls, run: Run, target: float, until: float) -> Observed:
        """Up to `until` (s). Raises InputError if the run cannot be read."""
        metric, values = run.metric, mean_metric(run)
        values = values[values.index <= until]
        first = float(values.iloc[0])
        way = target - first
        progress = ((values.to_numpy() - first) / way if way else np.ones(len(values))).astype(float)
        # A value that reaches the target has progress 1 or more, regardless of rounding.
        good = np.array([metric.reaches(value, target) for value in values])
        progress = np.maximum.accumulate(np.where(good, np.maximum(progress, 1.0), np.minimum(progress, 1 - 1e-12)))
        reached = float(values.index[int(good.argmax())]) if good.any() else None
        is_over = run.manifest["status"] == "completed"
        return cls(
            run=run,
            until=min(until, float(run.outcome["virtual_seconds"])) if is_over else until,
            curve=Curve(values.index.to_numpy(dtype=float), progress),
            reached=reached,
            problem="" if reached is not None else _problem(run, until),
        )

    @property
    def seconds(self) -> float:
        """Time (s) to the target, or of the last evaluation; up to it, tables do not change if the run continues."""
        return float(self.curve.times[-1]) if self.reached is None else self.reached

    @property
    def took(self) -> Duration:
        """Time to the target, or censored at the last evaluation."""
        earlier = self.curve.times[self.curve.times < self.seconds]
        gap = self.seconds - float(earlier[-1]) if len(earlier) else 0.0
        return Duration(self.seconds, self.reached is not None, gap)

    @property
    def reaches_alone(self) -> bool:
        """Whether its workers reached the target before any exchange."""
        alone = len(self.run.without_exchange) == len(self.run.manifest["workers"])
        return alone and self.reached is not None

    @cached_property
    def money(self) -> float:
        """Cost by then; NaN without prices."""
        if "tariff" not in self.run.manifest:
            return math.nan
        return costs_until(self.run, [self.seconds])[0]

    def money_by(self, seconds: float) -> float:
        """Expected cost after `seconds`, at the present rate of traffic; NaN without prices."""
        if math.isnan(self.money):
            return math.nan
        tariff = self.run.manifest["tariff"]
        now, then = (billed_hours(tariff, time) * sum(tariff["per_hour"]) for time in (self.seconds, seconds))
        return float(then + (self.money - now) * seconds / self.seconds)

    @cached_property
    def sent(self) -> Mapping[str, int]:
        """Bytes sent by then: `wan_bytes` and `bytes_sent`."""
        return sent_until(self.run, self.seconds)

    @property
    def wan_bytes(self) -> int:
        """Bytes between micro-clouds by then."""
        return self.sent["wan_bytes"]

    @property
    def bytes(self) -> int:
        """All bytes sent by then."""
        return self.sent["bytes_sent"]

    @cached_property
    def samples(self) -> int:
        """Samples in iterations up to `until`."""
        iterations = self.run.iterations()
        return int(iterations.loc[iterations["virtual_time"] <= self.until, "batch_size"].sum())

    @property
    def metric(self) -> float:
        """The workers' mean metric at the last evaluation by then."""
        values = mean_metric(self.run)
        return float(values[values.index <= self.seconds].iloc[-1])


def _problem(run: Run, until: float) -> str:
    diverged = run.outcome.get("diverged")
    if diverged:
        return "its training diverges"
    if run.outcome["status"] == "failed":
        return f"the run fails: {run.outcome['stopped_by']}"
    if run.outcome["status"] == "completed" and run.outcome["virtual_seconds"] <= until:
        return f"it ends without the target: {run.outcome['stopped_by']}"
    return ""


@dataclass(frozen=True)
class Estimate:
    """Estimate of what the target takes."""

    seconds: float
    """Infinite without progress."""
    money: float
    is_measured: bool
    """Whether a simulation reached the target at that time."""
    is_lower_bound: bool = False
    """Whether it is a lower bound: no candidate has reached the target yet."""


def leader(observation: Iterable[Observed]) -> Observed:
    """The observation with most progress; of equal ones, that with most evaluations."""
    return max(observation, key=lambda each: (min(each.curve.last, 1.0), len(each.curve.times)))


def estimate(observation: Observed, ahead: Observed) -> Estimate:
    """What the target takes, by scaling the time of the run `ahead` with the ratio of their times at equal progress.

    So all candidates are assumed to follow one learning curve at different speeds. If none has reached the target, the
    rest is extrapolated at the steepest slope so far, which gives a lower bound.
    """
    if observation.reached is not None:
        return Estimate(observation.reached, observation.money, is_measured=True)
    if not observation.curve.is_known:
        return Estimate(math.inf, math.inf, is_measured=False)
    own, other = observation.curve, ahead.curve
    seconds = max(own.lower_bound_seconds, observation.until)
    if own.last > 0 and (of_ahead := other.seconds_to(own.last)) > 0:
        whole = other.lower_bound_seconds if ahead.reached is None else ahead.reached
        seconds = max(seconds, own.seconds_to(own.last) * whole / of_ahead)
    money = observation.money_by(seconds) if math.isfinite(seconds) else math.inf
    return Estimate(seconds, money, is_measured=False, is_lower_bound=ahead.reached is None)
