"""The summary of a run: what to compare runs by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

TARGETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""The accuracies, as fractions, whose times every summary tells."""

Evaluation = tuple[float, Mapping[int, float]]
"""A time in seconds, and the accuracy then, as a fraction, of each worker that was evaluated."""

EvaluatedOn = Literal["test", "validation"]
"""What losses and accuracies were measured on: the test set, or training samples that were held out for it."""

Status = Literal["completed", "interrupted", "failed"]


@dataclass(frozen=True)
class Ending:
    """How a run ended, why, and how many seconds of its clock after its start."""

    status: Status
    stopped_by: str
    seconds: float


def summarize(
    *,
    scenario: str,
    system: str,
    seed: int,
    ending: Ending,
    wall_seconds: float,
    evaluation_seconds: float,
    samples: int,
    bytes_sent: int,
    iterations: Mapping[int, int],
    last_losses: Mapping[int, float],
    evaluations: Sequence[Evaluation],
    evaluated_on: EvaluatedOn = "test",
    target: float | None = None,
    late: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The summary of a run as JSON will say it.

    `iterations` has an entry for each worker, `last_losses` for those that have done one. `evaluations` go forward in
    time, and took `evaluation_seconds` of the `wall_seconds`; accuracies are summed up over those who were evaluated.
    `target` is an accuracy to tell the time of, besides `TARGETS`. `late` tells of a run of real nodes how often and by
    how many seconds computations took longer than modelled. What is unknown is None: a rate over no time, the accuracy
    of who was not evaluated, the time of an accuracy that was never reached.
    """
    return {
        "scenario": scenario,
        "system": system,
        "seed": seed,
        "status": ending.status,
        "stopped_by": ending.stopped_by,
        "virtual_seconds": ending.seconds,
        "wall_seconds": wall_seconds,
        "evaluation_share": evaluation_seconds / wall_seconds if wall_seconds > 0 else None,
        "samples": samples,
        "samples_per_wall_second": samples / wall_seconds if wall_seconds > 0 else None,
        "bytes_sent": bytes_sent,
        "iterations": {"mean": float(np.mean(list(iterations.values()))), "per_worker": list(iterations.values())},
        "evaluated_on": evaluated_on,
        "accuracy": _final_accuracy(evaluations, iterations),
        "time_to_accuracy": {
            str(accuracy): time_to_accuracy(evaluations, accuracy)
            for accuracy in sorted({*TARGETS, *([] if target is None else [target])})
        },
        "late": late and dict(late),
        "diverged": [worker for worker in iterations if not math.isfinite(last_losses.get(worker, 0.0))],
    }


def time_to_accuracy(evaluations: Sequence[Evaluation], accuracy: float) -> float | None:
    """The virtual time (s) of the first evaluation whose mean over the workers is at least `accuracy`, or None."""
    return next((time for time, accuracies in evaluations if np.mean(list(accuracies.values())) >= accuracy), None)


def _final_accuracy(evaluations: Sequence[Evaluation], workers: Iterable[int]) -> dict[str, Any]:
    if not evaluations:
        return {"mean": None, "std": None, "per_worker": []}
    _, by_worker = evaluations[-1]
    accuracies = list(by_worker.values())
    return {
        "mean": float(np.mean(accuracies)),
        "std": float(np.std(accuracies)),
        "per_worker": [by_worker.get(worker) for worker in workers],
    }
