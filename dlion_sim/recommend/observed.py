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

_LATE_PART = 0.5
"""Of the time: in the last half of it a run's steepness counts by itself."""


@dataclass(frozen=True)
class Curve:
    """The best progress up to each evaluation: 0 at the beginning, and 1 or more once the target is reached."""

    times: npt.NDArray[np.float64]
    """In virtual seconds; the first one is 0."""
    progress: npt.NDArray[np.float64]

    @property
    def last(self) -> float:
        """How far it gets."""
        return float(self.progress[-1])

    @property
    def is_known(self) -> bool:
        """Whether anything was measured after the beginning."""
        return len(self.times) > 1

    def seconds_to(self, progress: float) -> float:
        """When it comes to some progress, on straight lines between evaluations; infinite where it never does."""
        if progress > self.last:
            return math.inf
        place = int(np.searchsorted(self.progress, progress))
        if not place:
            return float(self.times[0])
        since, until = self.progress[place - 1 : place + 1]
        begin, end = self.times[place - 1 : place + 1]
        return float(begin + (end - begin) * (progress - since) / (until - since))

    @property
    def least_seconds(self) -> float:
        """When it would come to the target if it went on as steeply as on the whole, or lately if that is steeper.

        Learning slows down, so that it takes longer than this. Infinite without progress.
        """
        end = float(self.times[-1])
        if self.last >= 1:
            return self.seconds_to(1.0)
        if self.last <= 0:
            return math.inf
        late = np.interp((1 - _LATE_PART) * end, self.times, self.progress)
        steepest = max(self.last, (self.last - late) / _LATE_PART) / end
        return float(end + (1 - self.last) / steepest)


@dataclass(frozen=True)
class Observed:
    """A run up to a virtual time."""

    run: Run
    until: float
    """In seconds: that time, or the end of the run where it was earlier."""
    curve: Curve
    reached: float | None
    """The virtual time (s) of the first evaluation that is as good as the target."""
    problem: str
    """Why nothing will come of it; empty where there is no reason."""

    @classmethod
    def of(cls, run: Run, target: float, until: float) -> Observed:
        """Up to `until` (s). Raises InputError where the run cannot be read."""
        metric, values = run.metric, mean_metric(run)
        values = values[values.index <= until]
        first = float(values.iloc[0])
        way = target - first
        progress = ((values.to_numpy() - first) / way if way else np.ones(len(values))).astype(float)
        # What is as good as the target is there, whatever rounding makes of it.
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
        """Until the target, or until the last evaluation, up to which tables are the same however it goes on."""
        return float(self.curve.times[-1]) if self.reached is None else self.reached

    @property
    def took(self) -> Duration:
        """Until the target, or so long without it."""
        earlier = self.curve.times[self.curve.times < self.seconds]
        gap = self.seconds - float(earlier[-1]) if len(earlier) else 0.0
        return Duration(self.seconds, self.reached is not None, gap)

    @property
    def is_each_alone(self) -> bool:
        """Whether its workers came to the target before any of them took in anything from another."""
        alone = len(self.run.without_exchange) == len(self.run.manifest["workers"])
        return alone and self.reached is not None

    @cached_property
    def money(self) -> float:
        """What it had cost by then."""
        return costs_until(self.run, [self.seconds])[0]

    def money_by(self, seconds: float) -> float:
        """What it will have cost after so many seconds, if it goes on to send as much as so far."""
        tariff = self.run.manifest["tariff"]
        now, then = (billed_hours(tariff, time) * sum(tariff["per_hour"]) for time in (self.seconds, seconds))
        return float(then + (self.money - now) * seconds / self.seconds)

    @cached_property
    def sent(self) -> Mapping[str, int]:
        """What all had sent by then: `wan_bytes` and `bytes_sent`."""
        return sent_until(self.run, self.seconds)

    @property
    def wan_bytes(self) -> int:
        """That had gone from one micro-cloud to another by then."""
        return self.sent["wan_bytes"]

    @property
    def bytes(self) -> int:
        """That all had sent by then."""
        return self.sent["bytes_sent"]

    @cached_property
    def samples(self) -> int:
        """Whose gradients were applied by then, or by the end of what was seen."""
        iterations = self.run.iterations()
        return int(iterations.loc[iterations["virtual_time"] <= self.until, "batch_size"].sum())

    @property
    def metric(self) -> float:
        """The workers' mean of the task's metric at the last evaluation by then."""
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
    """What reaching the target takes."""

    seconds: float
    """Infinite where nothing was learned yet."""
    money: float
    is_measured: bool
    """Whether a simulation came to the target, and so long ago as this says."""
    is_least: bool = False
    """Whether it takes longer than this: nobody has come to the target, by which the rest could be told."""


def leader(seen: Iterable[Observed]) -> Observed:
    """Who is farthest; of several the one that was evaluated most often on the way, whose curve tells most."""
    return max(seen, key=lambda each: (min(each.curve.last, 1.0), len(each.curve.times)))


def estimate(seen: Observed, ahead: Observed) -> Estimate:
    """What the target takes: as many times what it takes whom is `ahead` as it took to come as far as this.

    So all are taken to learn along one curve, faster or slower. Where nobody has come to the target, the rest of the
    way is taken as steep as the steepest part of the way so far, so that the estimate is too low.
    """
    if seen.reached is not None:
        return Estimate(seen.reached, seen.money, is_measured=True)
    if not seen.curve.is_known:
        return Estimate(math.inf, math.inf, is_measured=False)
    own, other = seen.curve, ahead.curve
    seconds = max(own.least_seconds, seen.until)
    if own.last > 0 and (of_ahead := other.seconds_to(own.last)) > 0:
        whole = other.least_seconds if ahead.reached is None else ahead.reached
        seconds = max(seconds, own.seconds_to(own.last) * whole / of_ahead)
    money = seen.money_by(seconds) if math.isfinite(seconds) else math.inf
    return Estimate(seconds, money, is_measured=False, is_least=ahead.reached is None)
