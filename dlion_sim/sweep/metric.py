"""What a search goes for, and what a run comes to by that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from dlion_sim.errors import did_you_mean
from dlion_sim.metric import ACCURACY, METRICS
from dlion_sim.metric import Metric as TaskMetric
from dlion_sim.results import Run
from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model

_NAMES = (*METRICS, "loss")
_FORMS = "{time_to_accuracy: 0.9}, {time_to_target: 12.5}, {name: f1, higher_is_better: true}"
_ALLOWED = f"{', '.join(_NAMES)}, {_FORMS}"


class TimeToAccuracy(Model):
    """Virtual seconds until the workers' mean validation accuracy is so high; infinite where it never is."""

    time_to_accuracy: Annotated[float, Field(gt=0, le=1)]
    """A fraction."""


class TimeToTarget(Model):
    """Virtual seconds until the workers' mean of the task's metric on validation samples is as good; or infinite."""

    time_to_target: float
    """A value of the metric."""


class NamedMetric(Model):
    """The metric of a task of one's own."""

    name: str
    higher_is_better: bool


def _check_name(given: object) -> object:
    if given in _NAMES:
        return given
    raise RuleError(f"'{given}' is no metric{did_you_mean(given, _NAMES)}", allowed=_ALLOWED)


def _form(given: object) -> str:
    """Which of the forms it is written in."""
    match given:
        case TimeToAccuracy() | {"time_to_accuracy": _}:
            return "accuracy"
        case TimeToTarget() | {"time_to_target": _}:
            return "target"
        case NamedMetric() | {"name": _}:
            return "own"
        case dict():
            return "accuracy"  # which complains
        case _:
            return "named"


Metric = Annotated[
    Annotated[str, BeforeValidator(_check_name), Tag("named")]
    | Annotated[TimeToAccuracy, Tag("accuracy")]
    | Annotated[TimeToTarget, Tag("target")]
    | Annotated[NamedMetric, Tag("own")],
    Discriminator(_form),
]
"""The workers' mean of the task's metric or loss at the end, or the time to a target, all on validation samples."""


def direction(metric: Metric) -> Literal["maximize", "minimize"]:
    """Which way is better."""
    sought = _sought(metric)
    return "maximize" if sought and sought.higher_is_better else "minimize"


def _target(metric: TimeToAccuracy | TimeToTarget) -> float:
    return metric.time_to_accuracy if isinstance(metric, TimeToAccuracy) else metric.time_to_target


def _sought(metric: Metric) -> TaskMetric | None:
    """The task's metric that is gone for; None for a loss or a time."""
    match metric:
        case NamedMetric():
            return TaskMetric(metric.name, metric.higher_is_better)
        case str():
            return METRICS.get(metric)
        case _:
            return None


def title(metric: Metric) -> str:
    """The heading of a column of such values, with their unit."""
    if isinstance(metric, TimeToAccuracy):
        return f"time to {metric.time_to_accuracy:.4g} validation accuracy (s)"
    if isinstance(metric, TimeToTarget):
        return f"time to {metric.time_to_target:.4g} of the validation metric (s)"
    sought = _sought(metric)
    return f"validation {sought.name}{sought.unit}" if sought else "validation loss"


def written(metric: Metric, measured: float, runs: Sequence[Run]) -> str:
    """A value in such a column, the mean over some runs; with "<=" where evaluations tell no more than a bound."""
    from dlion_sim.analysis import duration_until
    from dlion_sim.analysis.statistics import restricted_mean

    if math.isinf(measured):
        return "never"
    if isinstance(metric, TimeToAccuracy | TimeToTarget):
        bound = restricted_mean([duration_until(run, _target(metric)) for run in runs]).bound
        return f"{bound} {measured:.2f}".lstrip() if measured else "before training"
    return f"{100 * measured:.2f}" if metric == "accuracy" else f"{measured:.4f}"


def measure(metric: Metric, run: Run) -> float:
    """What a completed run comes to, never NaN.

    Raises ValueError where that is nothing, in words, and InputError where the run cannot be read.
    """
    from dlion_sim.analysis import time_to_target

    diverged = (run.summary or {}).get("diverged")
    if diverged:
        raise ValueError(f"diverged: workers {diverged}")
    sought = ACCURACY if isinstance(metric, TimeToAccuracy) else _sought(metric)
    if sought and run.metric != sought:
        better = "higher" if run.metric.higher_is_better else "lower"
        raise ValueError(f"its metric is {run.metric.name}, of which {better} is better")
    if isinstance(metric, TimeToAccuracy | TimeToTarget):
        time = time_to_target(run, _target(metric))
        return math.inf if math.isnan(time) else time
    name, column = (sought.name, sought.key) if sought else ("loss", "loss")
    evaluations = run.evaluations()
    last = evaluations[evaluations["virtual_time"] == evaluations["virtual_time"].max()]
    measured = float(last[column].mean())
    if not math.isfinite(measured):
        raise ValueError(f"has no {name}: it was never evaluated" if last.empty else f"its {name} is {measured}")
    return measured
