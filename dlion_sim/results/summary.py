"""The summary of a run: what to compare runs by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

TARGETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""The test accuracies, as fractions, whose times every summary tells."""

Evaluation = tuple[float, Sequence[float]]
"""A virtual time in seconds, and each worker's test accuracy then, as a fraction."""


def summarize(
    *,
    scenario: str,
    system: str,
    seed: int,
    status: Literal["completed", "interrupted", "failed"],
    stopped_by: str,
    virtual_seconds: float,
    wall_seconds: float,
    evaluation_seconds: float,
    samples: int,
    bytes_sent: int,
    iterations: Sequence[int],
    last_losses: Sequence[float | None],
    evaluations: Sequence[Evaluation],
    target: float | None = None,
) -> dict[str, Any]:
    """The summary of a run as JSON will say it.

    `iterations` and `last_losses` have one entry a worker; a loss is None before the first iteration. `evaluations` go
    forward in time, and took `evaluation_seconds` of the `wall_seconds`. `target` is an accuracy to tell the time of,
    besides `TARGETS`. What is unknown is None: a rate over no time, the accuracy without an evaluation, the time of an
    accuracy that was never reached.
    """
    return {
        "scenario": scenario,
        "system": system,
        "seed": seed,
        "status": status,
        "stopped_by": stopped_by,
        "virtual_seconds": virtual_seconds,
        "wall_seconds": wall_seconds,
        "evaluation_share": evaluation_seconds / wall_seconds if wall_seconds > 0 else None,
        "samples": samples,
        "samples_per_wall_second": samples / wall_seconds if wall_seconds > 0 else None,
        "bytes_sent": bytes_sent,
        "iterations": {"mean": float(np.mean(iterations)), "per_worker": list(iterations)},
        "accuracy": _final_accuracy(evaluations),
        "time_to_accuracy": {
            str(accuracy): time_to_accuracy(evaluations, accuracy)
            for accuracy in sorted({*TARGETS, *([] if target is None else [target])})
        },
        "diverged": [worker for worker, loss in enumerate(last_losses) if loss is not None and not math.isfinite(loss)],
    }


def time_to_accuracy(evaluations: Sequence[Evaluation], accuracy: float) -> float | None:
    """The virtual time (s) of the first evaluation whose mean over the workers is at least `accuracy`, or None."""
    return next((time for time, accuracies in evaluations if np.mean(accuracies) >= accuracy), None)


def _final_accuracy(evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    if not evaluations:
        return {"mean": None, "std": None, "per_worker": []}
    _, accuracies = evaluations[-1]
    return {"mean": float(np.mean(accuracies)), "std": float(np.std(accuracies)), "per_worker": list(accuracies)}
