"""The target value of the metric by which runs are compared: given, of their scenarios, or a common one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dlion_sim.analysis.curves import mean_metric
from dlion_sim.analysis.groups import Group, metric_of
from dlion_sim.errors import InputError
from dlion_sim.metric import ACCURACY
from dlion_sim.results import Run
from dlion_sim.results.run_folder import SUMMARY

_PERCENT = "%"


@dataclass(frozen=True)
class Target:
    """A value of the metric, and its source as text: empty if it was given."""

    value: float
    source: str = ""


def chosen_target(groups: Sequence[Group], given: float | str | None) -> Target:
    """The `given` target, or else the one of the runs' scenarios, if there is just one, or else `common_target`.

    A number is in the metric's unit, of accuracy a fraction; a text may be an accuracy in percent. Raises InputError
    for an invalid target, for several metrics, and as `common_target`.
    """
    metric = metric_of(groups)
    if given is not None:
        if metric == ACCURACY:
            return Target(read_accuracy(given, "target"))
        return Target(_number(str(given), f"a value of the {metric.name}, e.g. 12.5", "target"))
    stated = {run.target for group in groups if (run := group.runs[0]).target is not None}
    if len(stated) == 1:
        return Target(stated.pop(), "the scenario's own target")
    return Target(common_target(groups), "the best that half of the completed runs reached")


def common_target(groups: Sequence[Group]) -> float:
    """The best value of the metric that half of the completed runs reached; of accuracy, of those in all summaries.

    Raises InputError if no run is completed, there are no such accuracies, or the runs have several metrics.
    """
    completed = [run for group in groups for run in group.completed]
    if not completed:
        raise InputError("none of the runs is completed")
    metric = metric_of(groups)
    if metric != ACCURACY:
        best = [metric.best(curve) for run in completed if len(curve := mean_metric(run))]
        if not best:
            raise InputError(f"none of the runs was evaluated, so none has reached any {metric.name}")
        return sorted(best, reverse=metric.higher_is_better)[(len(best) - 1) // 2]
    counts = _reached(completed)
    return max((target for target, count in counts.items() if 2 * count >= len(completed)), default=min(counts))


def _reached(runs: Sequence[Run]) -> dict[float, int]:
    """How many of the runs reached each of the accuracies that are in all summaries."""
    summaries = [run.outcome for run in runs]
    shared = set(summaries[0]["time_to_accuracy"])
    for run, summary in zip(runs, summaries, strict=True):
        shared &= set(summary["time_to_accuracy"])
        if not shared:
            problem = "has no accuracy in common with the other summaries"
            raise InputError(problem, file=run.folder / SUMMARY, path="time_to_accuracy")
    return {
        float(target): sum(summary["time_to_accuracy"][target] is not None for summary in summaries)
        for target in shared
    }


def read_accuracy(given: float | str, argument: str) -> float:
    """An accuracy as a fraction; a text may be in percent. Raises InputError, which names the `argument`."""
    allowed = "more than 0 %, up to 100 %, e.g. 90, 90 % or 0.9"
    fraction = given if isinstance(given, float) else _fraction(given.strip(), allowed, argument)
    if not 0 < fraction <= 1:
        raise InputError(f"no accuracy is {given}", file=f"`{argument}`", allowed=allowed)
    return fraction


def _fraction(text: str, allowed: str, argument: str) -> float:
    """An accuracy given as a fraction or in percent."""
    value = _number(text.removesuffix(_PERCENT), allowed, argument)
    if text.endswith(_PERCENT) or value > 1:
        return value / 100
    if value == 1:
        raise InputError("1 may be 1 % or all", file=f"`{argument}`", allowed="1 % or 100 %")
    return value


def _number(text: str, allowed: str, argument: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{text!r} is no number", file=f"`{argument}`", allowed=allowed)
    return value
