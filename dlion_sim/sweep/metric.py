"""What a search goes for, and what a run comes to by that."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from dlion_sim.errors import did_you_mean
from dlion_sim.results import Run
from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model

_ALLOWED = "accuracy, loss, {time_to_accuracy: 0.9}"


class TimeToAccuracy(Model):
    """Virtual seconds until the workers' mean validation accuracy is so high; infinite where it never is."""

    time_to_accuracy: Annotated[float, Field(gt=0, le=1)]
    """A fraction."""


def _check_name(given: object) -> object:
    if given in ("accuracy", "loss"):
        return given
    near = did_you_mean(given, ("accuracy", "loss"))
    raise RuleError(f"'{given}' is no metric{near}", allowed=_ALLOWED)


Metric = Annotated[
    Annotated[Literal["accuracy", "loss"], BeforeValidator(_check_name), Tag("named")]
    | Annotated[TimeToAccuracy, Tag("time")],
    Discriminator(lambda given: "time" if isinstance(given, dict | TimeToAccuracy) else "named"),
]
"""The workers' mean accuracy or loss at the end, or the time to an accuracy, all on validation samples."""


def direction(metric: Metric) -> Literal["maximize", "minimize"]:
    """Which way is better."""
    return "maximize" if metric == "accuracy" else "minimize"


def title(metric: Metric) -> str:
    """The heading of a column of such values, with their unit."""
    if isinstance(metric, TimeToAccuracy):
        return f"time to {metric.time_to_accuracy:.4g} validation accuracy (s)"
    return "validation accuracy (%)" if metric == "accuracy" else "validation loss"


def written(metric: Metric, measured: float) -> str:
    """A value in such a column."""
    if math.isinf(measured):
        return "never"
    if isinstance(metric, TimeToAccuracy):
        return f"{measured:.2f}"
    return f"{100 * measured:.2f}" if metric == "accuracy" else f"{measured:.4f}"


def measure(metric: Metric, run: Run) -> float:
    """What a completed run comes to, never NaN.

    Raises ValueError where that is nothing, in words, and InputError where the run cannot be read.
    """
    from dlion_sim.analysis import time_to_accuracy

    diverged = (run.summary or {}).get("diverged")
    if diverged:
        raise ValueError(f"diverged: workers {diverged}")
    if isinstance(metric, TimeToAccuracy):
        time = time_to_accuracy(run, metric.time_to_accuracy)
        return math.inf if math.isnan(time) else time
    evaluations = run.evaluations()
    last = evaluations[evaluations["virtual_time"] == evaluations["virtual_time"].max()]
    measured = float(last[metric].mean())
    if not math.isfinite(measured):
        raise ValueError(f"has no {metric}: it was never evaluated" if last.empty else f"its {metric} is {measured}")
    return measured
