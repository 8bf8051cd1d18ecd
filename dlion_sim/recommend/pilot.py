"""A target that was not given: what the scenario's own system reaches within the bound, or the best candidate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dlion_sim.analysis.curves import mean_metric
from dlion_sim.errors import InputError
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.recommend.candidates import Candidate, held_out
from dlion_sim.results import Run, final_metric
from dlion_sim.scenario import DURATION, Scenario
from dlion_sim.sweep import Base, Point

BEST = "best"
"""Given as a target: the best that any candidate reaches."""
_PERCENT = 0.01
"""What proposed accuracies are whole multiples of."""
_DIGITS = 3
"""Of other proposed targets."""
NEEDED = "`target_accuracy`, e.g. 80, or one in the scenario"


@dataclass(frozen=True)
class Pilots:
    """Runs that tell a target, by successive halving: the better half of them lasts twice as long, up to the bound."""

    points: Sequence[Point]
    words: Mapping[str, str]
    """What runs there, by the point's name."""
    seconds: float
    """The bound, in virtual seconds."""

    @classmethod
    def of_own_system(cls, base: Base, scenario: Scenario, seconds: float) -> Pilots:
        """One run, of the scenario's system at its learning rate."""
        point = Point("pilot", base, {}, {**_until(seconds), **held_out(scenario)}, sweep=base.file)
        return cls([point], {point.name: scenario.system.name}, seconds)

    @classmethod
    def of_all(cls, base: Base, candidates: Iterable[Candidate], seconds: float) -> Pilots:
        """A run of each candidate on the scenario's own machines."""
        named = {f"pilot-{each.name}": each for each in candidates}
        points = [
            Point(name, base, each.labels, {**each.values, **_until(seconds)}, sweep=base.file)
            for name, each in named.items()
        ]
        return cls(points, {name: each.in_words for name, each in named.items()}, seconds)

    @property
    def times(self) -> list[float]:
        """When they are compared, in virtual seconds; the last is the bound."""
        halvings = max(0, math.ceil(math.log2(len(self.points))) - 1)
        return [self.seconds / 2**left for left in range(halvings, -1, -1)]

    def better(self, points: Sequence[Point], runs: Mapping[str, Run], until: float) -> list[Point]:
        """The better half of the points, the best first, by their runs up to a time (s); without those that have no run
        or diverge."""
        values = {name: reached(run, until) for name, run in runs.items()}
        learning = [each for each in points if math.isfinite(values.get(each.name, math.nan))]
        sign = -1 if learning and runs[learning[0].name].metric.higher_is_better else 1
        return sorted(learning, key=lambda each: sign * values[each.name])[: math.ceil(len(points) / 2)]


def _until(seconds: float) -> dict[str, object]:
    return {"duration": DURATION.format(seconds), "iterations": None}


def reached(run: Run, until: float) -> float:
    """The metric at the end of a time (s), as `final_metric`; NaN if it diverged."""
    curve = mean_metric(run)
    curve = curve[curve.index <= until]
    mean = final_metric(list(zip(curve.index, curve, strict=True)), until)["mean"]
    return math.nan if mean is None else float(mean)


def proposed(metric: Metric, first: float, last: float) -> float:
    """The last value, rounded to what is easier to reach. Raises InputError unless it is better than the first."""
    step = _PERCENT if metric == ACCURACY else 10.0 ** (math.floor(math.log10(abs(last) or 1.0)) + 1 - _DIGITS)
    towards = math.floor if metric.higher_is_better else math.ceil
    target = float(f"{towards(last / step) * step:.9g}")
    if metric.reaches(first, target):
        raise InputError("there is no target, and nothing is learned within the bound", allowed=NEEDED)
    return target
