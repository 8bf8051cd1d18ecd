"""A target for a scenario without one: what its own system reaches within the bound."""

from __future__ import annotations

import math

from dlion_sim.analysis.comparison import final
from dlion_sim.analysis.curves import mean_metric
from dlion_sim.errors import InputError
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.recommend.candidates import VALIDATION
from dlion_sim.results import Run
from dlion_sim.scenario import DURATION, Scenario
from dlion_sim.sweep import Base, Point

_PERCENT = 0.01
"""What proposed accuracies are whole multiples of."""
_DIGITS = 3
"""Of other proposed targets."""
NEEDED = "`target_accuracy`, e.g. 80, or one in the scenario"


def pilot(base: Base, scenario: Scenario, seconds: float) -> Point:
    """The scenario's run with validation samples, for so many virtual seconds."""
    held_out = {} if scenario.workload.validation else {"workload.validation": VALIDATION}
    values = {"duration": DURATION.format(seconds), "iterations": None, **held_out}
    return Point("pilot", base, {}, values, sweep=base.file)


def target_of(run: Run) -> float:
    """What it reached, as a target. Raises InputError if it failed or learned nothing."""
    last = float(final(run)["mean"]) if run.summary else math.nan
    return proposed(run.metric, float(mean_metric(run).iloc[0]), last)


def proposed(metric: Metric, first: float, last: float) -> float:
    """The last value, rounded to what is easier to reach. Raises InputError unless it is better than the first."""
    if not math.isfinite(last):
        raise InputError("there is no target, and the scenario's own system fails or diverges", allowed=NEEDED)
    step = _PERCENT if metric == ACCURACY else 10.0 ** (math.floor(math.log10(abs(last) or 1.0)) + 1 - _DIGITS)
    towards = math.floor if metric.higher_is_better else math.ceil
    target = float(f"{towards(last / step) * step:.9g}")
    if metric.reaches(first, target):
        raise InputError("there is no target, and the scenario's own system learns nothing", allowed=NEEDED)
    return target
