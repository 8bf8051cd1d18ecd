"""Quantities of a run over time (curves), and their mean and spread over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from dlion_sim.analysis.cost import costs_until
from dlion_sim.analysis.groups import Group
from dlion_sim.analysis.outages import process_outages
from dlion_sim.analysis.statistics import mean_of
from dlion_sim.errors import InputError
from dlion_sim.results import Run
from dlion_sim.results.json_document import MOST

Curve = pd.Series
"""Values by virtual time (s), which increases, or by another measure of progress."""

Band = Literal["range", "interval"]
"""A band over seeds: from the least to the greatest value, or the mean's 95 % t-interval."""

Progress = Literal["time", "bytes", "wan_bytes", "iterations", "epochs", "cost"]
"""What a curve is drawn over: virtual time (s); bytes sent by all workers, or over the WAN; iterations, the workers'
mean; epochs, the samples processed by all workers over the training samples; or the run's cost."""


class Drift(NamedTuple):
    """What changes in a stream, and when (s)."""

    what: str
    begin: float
    end: float


def mean_metric(run: Run) -> Curve:
    """Mean over the workers of the task's metric (accuracy: a fraction), at each evaluation.

    Without values of diverged runs that are too large to compute with.
    """
    return _known(run.evaluations().groupby("virtual_time")[run.metric.key].mean())


def worker_deviation(run: Run) -> Curve:
    """Standard deviation of the task's metric among the workers, at each evaluation.

    Raises InputError for a run whose server is evaluated in their place.
    """
    if run.evaluates_server:
        raise InputError(
            "evaluates its server's parameters, not the workers'", file=run.folder, allowed="runs of other systems"
        )
    return _known(run.evaluations().groupby("virtual_time")[run.metric.key].std(ddof=0))


def _known(curve: Curve) -> Curve:
    return curve[curve.abs() <= MOST]


def online_accuracy(run: Run) -> Curve:
    """Accuracy of all workers' samples of a stream before training on them, between evaluations, by the interval's end.

    Raises InputError for a run without a stream.
    """
    arrivals = run.arrivals()
    if arrivals.empty:
        raise InputError("has no stream of samples", file=run.folder, allowed="a run with workload: {stream: ...}")
    # A run that was cut off ends without an evaluation.
    ends = np.union1d(run.evaluations()["virtual_time"], arrivals["virtual_time"].max())
    places = np.searchsorted(ends, arrivals["virtual_time"])
    right = arrivals["accuracy"] * arrivals["batch_size"]
    sums = arrivals.assign(right=right).groupby(ends[places])[["right", "batch_size"]].sum()
    return (sums["right"] / sums["batch_size"]).dropna()


def drift_intervals(run: Run) -> list[Drift]:
    """The drifts of the run's stream, in order; those of the same interval are one."""
    named: dict[tuple[float, float], dict[str, None]] = {}
    for drift in run.manifest.get("drift", []):
        named.setdefault((drift["begin"], drift["end"]), {})[drift["what"]] = None
    return [Drift(", ".join(names), *times) for times, names in sorted(named.items())]


def availability(run: Run) -> Curve:
    """The number of workers whose processes run, by the time (s) from which on; the last point is the run's end.

    Raises InputError for a run of a scenario without `availability`.
    """
    workers, end = len(run.manifest.get("workers", [])), _with_availability(run)["virtual_seconds"]
    outages = chain.from_iterable(own for number, own in process_outages(run).items() if number < workers)
    changes = [(0.0, workers), *chain.from_iterable(((begin, -1), (back, 1)) for begin, back in outages)]
    steps = pd.DataFrame(changes, columns=["time", "change"]).groupby("time")["change"].sum().cumsum()
    available: Curve = steps[steps.index <= end]
    available.loc[end] = available.iloc[-1]
    return available


def goodput(run: Run) -> tuple[float, float]:
    """Samples per second of all workers: those that reached the model, and lost ones. Raises as `availability`."""
    summary = _with_availability(run)
    samples, seconds = summary["availability"], summary["virtual_seconds"] or 1.0
    return samples["useful"] / seconds, (samples["computed"] - samples["useful"]) / seconds


def _with_availability(run: Run) -> Mapping[str, Any]:
    summary = run.outcome
    if "availability" not in summary:
        raise InputError("has no availability", file=run.folder, allowed="a run of a scenario with `availability`")
    return summary


def against(run: Run, curve: Curve, progress: Progress) -> Curve:
    """A curve of the run over `progress` instead of time; of several points at the same progress, the last one.

    Raises InputError for epochs if the manifest has no number of training samples, and for the cost without prices.
    """
    if progress == "time":
        return curve
    moved = pd.Series(curve.to_numpy(), index=progress_at(run, curve.index.tolist(), progress))
    return moved.groupby(level=0).last()


def progress_at(run: Run, times: Sequence[float], progress: Progress) -> list[float]:
    """The progress at each of some times (s). Raises InputError as `against`."""
    if progress == "time":
        return list(times)
    if progress == "cost":
        return costs_until(run, times)
    done = _done(run, progress).sort_index().cumsum()
    values: list[float] = np.concatenate([[0.0], done])[np.searchsorted(done.index, times, side="right")].tolist()
    return values


def _done(run: Run, progress: Literal["bytes", "wan_bytes", "iterations", "epochs"]) -> pd.Series:
    """The progress made at each time (s)."""
    if progress in ("bytes", "wan_bytes"):
        return run.links().groupby("virtual_time")[progress].sum()
    by_time = run.iterations().groupby("virtual_time")["batch_size"]
    if progress == "iterations":
        return by_time.size() / len(run.manifest["workers"])
    samples = run.manifest.get("training_samples")
    if not samples:
        raise InputError("has no number of training samples, which epochs need", file=run.folder)
    return by_time.sum().astype(float) / int(samples)


def of_groups(groups: Sequence[Group], quantity: Callable[[Run], Curve], band: Band) -> list[list[Curve]]:
    """The curves of each group: of all its runs, or for an interval only of the independent ones."""
    return [
        [quantity(run) for run in (group.samples.values() if band == "interval" else ()) or group.runs]
        for group in groups
    ]


def over_seeds(curves: Sequence[Curve], band: Band = "range") -> pd.DataFrame:
    """`mean`, `low` and `high` of some curves, up to the end of the shortest one.

    Curves are interpolated linearly. Curves without points are left out.
    """
    curves = [curve for curve in curves if len(curve)]
    if not curves:
        return pd.DataFrame({"mean": [], "low": [], "high": []})
    end = min(curve.index[-1] for curve in curves)
    times = np.unique(np.concatenate([curve.index[curve.index <= end] for curve in curves]))
    values = np.array([np.interp(times, curve.index, curve) for curve in curves])
    mean, low, high = values.mean(axis=0), values.min(axis=0), values.max(axis=0)
    if band == "interval" and len(curves) > 1:
        half = np.array([mean_of(at.tolist()).high for at in values.T]) - mean
        low, high = mean - half, mean + half
    return pd.DataFrame({"mean": mean, "low": low, "high": high}, times)


def at(curve: Curve, time: float) -> float:
    """The last value up to a time (s); NaN if the curve begins later or ends before."""
    if not len(curve) or time > curve.index[-1] * (1 + 1e-9):
        return float("nan")
    known = curve[curve.index <= time * (1 + 1e-9)]
    return float(known.iloc[-1]) if len(known) else float("nan")
