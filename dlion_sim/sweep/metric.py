"""Metrics that a search optimizes, and their values for a run."""

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
    """Virtual seconds until the workers' mean validation accuracy; infinite if it is not reached."""

    time_to_accuracy: Annotated[float, Field(gt=0, le=1)]
    """Accuracy as a fraction."""


class TimeToTarget(Model):
    """Virtual seconds until the workers' mean validation metric reaches a value; infinite if it does not."""

    time_to_target: float
    """A value of the metric."""


class NamedMetric(Model):
    """The metric of a user's own task."""

    name: str
    higher_is_better: bool


def _check_name(given: object) -> object:
    if given in _NAMES:
        return given
    raise RuleError(f"'{given}' is not a metric{did_you_mean(given, _NAMES)}", allowed=_ALLOWED)


def _form(given: object) -> str:
    """The form it is written in."""
    match given:
        case TimeToAccuracy() | {"time_to_accuracy": _}:
            return "accuracy"
        case TimeToTarget() | {"time_to_target": _}:
            return "target"
        case NamedMetric() | {"name": _}:
            return "own"
        case dict():
            return "accuracy"  # which raises the error
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
    """The direction of improvement."""
    task_metric = _task_metric(metric)
    return "maximize" if task_metric and task_metric.higher_is_better else "minimize"


def _target(metric: TimeToAccuracy | TimeToTarget) -> float:
    return metric.time_to_accuracy if isinstance(metric, TimeToAccuracy) else metric.time_to_target


def _task_metric(metric: Metric) -> TaskMetric | None:
    """The task's metric to optimize; None for a loss or a time."""
    match metric:
        case NamedMetric():
            return TaskMetric(metric.name, metric.higher_is_better)
        case str():
            return METRICS.get(metric)
        case _:
            return None


def title(metric: Metric) -> str:
    """The heading of a column of values, with their unit."""
    if isinstance(metric, TimeToAccuracy):
        return f"time to {metric.time_to_accuracy:.4g} validation accuracy (s)"
    if isinstance(metric, TimeToTarget):
        return f"time to {metric.time_to_target:.4g} of the validation metric (s)"
    task_metric = _task_metric(metric)
    return f"validation {task_metric.name}{task_metric.unit}" if task_metric else "validation loss"


def written(metric: Metric, measured: float, runs: Sequence[Run]) -> str:
    """A value in such a column, the mean over runs; with "<=" if evaluations give only a bound."""
    from dlion_sim.analysis import duration_until
    from dlion_sim.analysis.statistics import restricted_mean

    if math.isinf(measured):
        return "never"
    if isinstance(metric, TimeToAccuracy | TimeToTarget):
        bound = restricted_mean([duration_until(run, _target(metric)) for run in runs]).bound
        return f"{bound} {measured:.2f}".lstrip() if measured else "before training"
    return f"{100 * measured:.2f}" if metric == "accuracy" else f"{measured:.4f}"


def measure(metric: Metric, run: Run) -> float:
    """The value for a completed run, never NaN.

    Raises ValueError with a reason if there is none, and InputError if the run cannot be read.
    """
    from dlion_sim.analysis import time_to_target

    diverged = (run.summary or {}).get("diverged")
    if diverged:
        raise ValueError(f"diverged: workers {diverged}")
    task_metric = ACCURACY if isinstance(metric, TimeToAccuracy) else _task_metric(metric)
    if task_metric and run.metric != task_metric:
        better = "higher" if run.metric.higher_is_better else "lower"
        raise ValueError(f"its metric is {run.metric.name}, of which {better} is better")
    if isinstance(metric, TimeToAccuracy | TimeToTarget):
        time = time_to_target(run, _target(metric))
        return math.inf if math.isnan(time) else time
    name, column = (task_metric.name, task_metric.key) if task_metric else ("loss", "loss")
    evaluations = run.evaluations()
    last = evaluations[evaluations["virtual_time"] == evaluations["virtual_time"].max()]
    measured = float(last[column].mean())
    if not math.isfinite(measured):
        raise ValueError(f"has no {name}: it was never evaluated" if last.empty else f"its {name} is {measured}")
    return measured
