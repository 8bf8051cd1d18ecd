"""The table that compares groups of runs: accuracy, time to an accuracy, speed-up over Baseline, traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from dlion_sim.analysis.curves import mean_accuracy
from dlion_sim.analysis.groups import REFERENCE, Group
from dlion_sim.errors import InputError
from dlion_sim.results import Run


def comparison(groups: Sequence[Group], target: float) -> pd.DataFrame:
    """A row a group, over its completed runs; what is unknown is NaN.

    Columns: `runs`, `completed`; `accuracy` at the end (fraction) and `time` (s) to the accuracy `target`, each with
    its standard deviation over seeds as `accuracy_std`, `time_std`; how many `reached` it; `speedup`, by which factor
    the mean time is shorter than that of Baseline in the same environment; `bytes_sent`, a run's mean.
    """
    table = pd.DataFrame([_row(group, target) for group in groups])
    references = {
        _environment(group): float(time)
        for group, time in zip(groups, table["time"], strict=True)
        if group.labels["system"] == REFERENCE
    }
    reference = [references.get(_environment(group), float("nan")) for group in groups]
    return table.assign(speedup=np.array(reference) / table["time"])


def time_to_accuracy(run: Run, target: float) -> float:
    """Virtual seconds until the workers' mean accuracy is `target`; NaN where it never is."""
    told: Mapping[str, float | None] = (run.summary or {}).get("time_to_accuracy", {})
    if str(target) in told:
        time = told[str(target)]
        return float("nan") if time is None else time
    accuracy = mean_accuracy(run)
    reached = accuracy.index[accuracy >= target]
    return float(reached[0]) if len(reached) else float("nan")


def common_target(groups: Sequence[Group]) -> float:
    """The highest of the accuracies in all summaries that half of the completed runs reached.

    Raises InputError where no run is completed.
    """
    summaries = [run.summary for group in groups for run in group.completed if run.summary]
    if not summaries:
        raise InputError("none of the runs is completed")
    shared = set.intersection(*(set(summary["time_to_accuracy"]) for summary in summaries))
    counts = {
        float(target): sum(summary["time_to_accuracy"][target] is not None for summary in summaries)
        for target in shared
    }
    return max((target for target, count in counts.items() if 2 * count >= len(summaries)), default=min(counts))


def _row(group: Group, target: float) -> dict[str, float]:
    completed = group.completed
    summaries = [run.summary or {} for run in completed]
    accuracies = [summary["accuracy"]["mean"] for summary in summaries]
    accuracy, accuracy_std = _mean_and_std([float("nan") if value is None else value for value in accuracies])
    times = [time for run in completed if not np.isnan(time := time_to_accuracy(run, target))]
    time, time_std = _mean_and_std(times)
    return {
        "runs": len(group.runs),
        "completed": len(completed),
        "accuracy": accuracy,
        "accuracy_std": accuracy_std,
        "time": time,
        "time_std": time_std,
        "reached": len(times),
        "bytes_sent": _mean_and_std([summary["bytes_sent"] for summary in summaries])[0],
    }


def _mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation, NaN where there are too few values."""
    mean = float(np.mean(values)) if values else float("nan")
    return mean, float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def _environment(group: Group) -> tuple[tuple[str, str], ...]:
    """All that a group is told apart by, except its system."""
    return tuple((key, value) for key, value in group.labels.items() if key not in ("system", "run"))
