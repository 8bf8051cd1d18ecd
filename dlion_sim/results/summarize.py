"""Making a run's summary, by which runs are compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.results.cost import Cost
from dlion_sim.results.json_document import MOST
from dlion_sim.results.manifest import CostAs, EvaluatedOn, EvaluationSamples
from dlion_sim.results.summary import Status

TARGETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""The accuracies, as fractions, whose times are in every summary."""

_DIVERGED = 10.0
"""Minimum loss of a diverged worker, relative to the greatest first loss of all."""

_LAST_PART, _FEWEST_LAST = 0.1, 3
"""The final accuracy is of the evaluations in the last part of a run, or at least so many."""

SPENT = ("compute", "input", "profile", "wait")
"""Workers' time by activity: computing, waiting for samples, timing their machines, waiting for peers."""

Evaluation = tuple[float, Mapping[int, float]]
"""A time (s), and the task's metric of each worker that was evaluated."""


@dataclass(frozen=True)
class Ending:
    """How a run ended, why, and when (s)."""

    status: Status
    stopped_by: str
    seconds: float


def summarize(
    *,
    scenario: str,
    system: str,
    system_label: str,
    seed: int,
    ending: Ending,
    wall_seconds: float,
    evaluation_seconds: float,
    samples: int,
    wan_bytes: int,
    bytes_sent: int,
    iterations: Mapping[int, int],
    exchanges: Mapping[int, int],
    losses: Mapping[int, tuple[float, float]],
    spent: Mapping[int, Mapping[str, float]] = MappingProxyType({}),
    evaluations: Sequence[Evaluation],
    full_evaluation: Mapping[int, float] = MappingProxyType({}),
    evaluation_samples: EvaluationSamples | None = None,
    metric: Metric = ACCURACY,
    evaluated_on: EvaluatedOn = "test",
    target: float | None = None,
    late: Mapping[str, Any] | None = None,
    cost_as: CostAs | None = None,
    transport: Mapping[str, Any] | None = None,
    availability: Mapping[str, Any] | None = None,
    cost: Cost | None = None,
    stream: Mapping[str, Any] | None = None,
    dropped: float | None = None,
) -> dict[str, Any]:
    """The summary of a run as plain data, see `Summary`.

    By worker: `iterations`; `exchanges`, those iterations that applied a peer's contribution; `losses`, the first and
    the last one, of workers with any; `spent`, seconds by `SPENT`. `evaluations` are in order of time and took
    `evaluation_seconds` of the `wall_seconds`. `full_evaluation` is the metric by worker at the end on all samples, if
    evaluations are on fewer of the `evaluation_samples`. `target` is a value of the metric to time, besides `TARGETS`
    of accuracy. `late`: as `Lateness`, of real nodes; `transport`: as `Transported`; `availability`: as
    `Availability`; `stream`: as `Streamed`; `dropped`: as `dropped_samples`. Unknown values are None: a rate over no
    time, the metric of a worker that was not evaluated, the time of a target that was not reached.
    """
    if evaluation_samples and evaluation_samples["curve"] == evaluation_samples["full"]:
        full_evaluation = evaluations[-1][1] if evaluations else {}
    targets = {*(TARGETS if metric == ACCURACY else ()), *([] if target is None else [target])}
    return {
        "scenario": scenario,
        "system": system,
        "system_label": system_label,
        "seed": seed,
        "status": ending.status,
        "stopped_by": ending.stopped_by,
        "virtual_seconds": ending.seconds,
        "wall_seconds": wall_seconds,
        "evaluation_share": evaluation_seconds / wall_seconds if wall_seconds > 0 else None,
        "samples": samples,
        "samples_per_wall_second": samples / wall_seconds if wall_seconds > 0 else None,
        "wan_bytes": wan_bytes,
        "bytes_sent": bytes_sent,
        **({"transport": dict(transport)} if transport else {}),
        **({"availability": dict(availability)} if availability else {}),
        **({"stream": dict(stream)} if stream else {}),
        **({"dropped_samples": dropped} if dropped is not None else {}),
        **({"cost": cost} if cost else {}),
        **({"cost_as": cost_as} if cost_as else {}),
        "iterations": _counts(iterations),
        "exchanges": _counts(exchanges),
        **({"spent": {what: [each[what] for each in spent.values()] for what in SPENT}} if spent else {}),
        "evaluated_on": evaluated_on,
        metric.key: _over_workers(evaluations[-1][1] if evaluations else {}, iterations),
        f"full_{metric.key}": _over_workers(full_evaluation, iterations),
        f"final_{metric.key}": final_metric([(time, _mean(each)) for time, each in evaluations], ending.seconds),
        f"time_to_{metric.key}": {str(each): time_to_target(evaluations, each, metric) for each in sorted(targets)},
        "not_before": not_before(evaluations, sorted(targets), metric),
        "late": late and dict(late),
        "diverged": _diverged(losses),
    }


def _diverged(losses: Mapping[int, tuple[float, float]]) -> list[int]:
    """The workers whose last loss is not finite, or many times the greatest first one.

    Not one's own first one: a worker that joins late begins with trained parameters.
    """
    most = _DIVERGED * max((first for first, _ in losses.values() if math.isfinite(first)), default=math.inf)
    return [worker for worker, (_, last) in sorted(losses.items()) if not math.isfinite(last) or last > most]


def final_metric(values: Sequence[tuple[float, float]], seconds: float) -> dict[str, Any]:
    """The `mean` of a metric's last `values`, (time in s, value) each, and the number of these `evaluations`.

    Those in the last tenth of the run's `seconds`, but at least three, as the last one alone is random. One at 0 s, of
    an untrained model, counts only if there is no other.
    """
    trained = [each for each in values if each[0] > 0] or values
    late = sum(time >= (1 - _LAST_PART) * seconds * (1 - 1e-9) for time, _ in trained)
    last = [value for _, value in trained[-max(late, _FEWEST_LAST) :]]
    return {"mean": _known(float(np.mean(last))) if last else None, "evaluations": len(last)}


def time_to_target(evaluations: Sequence[Evaluation], target: float, metric: Metric) -> float | None:
    """The virtual time (s) of the first evaluation whose mean over the workers is as good as `target`, or None."""
    return next((time for time, values in evaluations if metric.reaches(_mean(values), target)), None)


def not_before(evaluations: Sequence[Evaluation], targets: Iterable[float], metric: Metric) -> dict[str, float | None]:
    """By target that was reached, as text: the virtual time (s) of the evaluation before, None if it was the first.

    The target was reached between the two.
    """
    times = [time for time, _ in evaluations]
    reached = {target: time_to_target(evaluations, target, metric) for target in targets}
    places = {str(target): times.index(time) for target, time in reached.items() if time is not None}
    return {target: times[place - 1] if place else None for target, place in places.items()}


def _mean(values: Mapping[int, float]) -> float:
    return float(np.mean(list(values.values())))


def _known(value: float | None) -> float | None:
    """None for a value that would overflow sums: a run may diverge."""
    return None if value is None or abs(value) > MOST else value


def _counts(by_worker: Mapping[int, int]) -> dict[str, Any]:
    return {"mean": float(np.mean(list(by_worker.values()))), "per_worker": list(by_worker.values())}


def _over_workers(by_worker: Mapping[int, float], workers: Iterable[int]) -> dict[str, Any]:
    if not by_worker:
        return {"mean": None, "std": None, "per_worker": []}
    values = list(by_worker.values())
    with np.errstate(invalid="ignore"):  # of a diverged worker
        mean, std = float(np.mean(values)), float(np.std(values))
    return {
        "mean": _known(mean),
        "std": _known(std),
        "per_worker": [_known(by_worker.get(worker)) for worker in workers],
    }
