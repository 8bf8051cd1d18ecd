"""How a quantity of a run goes over time, and its mean and spread over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from dlion_sim.analysis.cost import costs_until
from dlion_sim.analysis.groups import Group
from dlion_sim.analysis.statistics import mean_of
from dlion_sim.errors import InputError
from dlion_sim.results import Run
from dlion_sim.results.json_document import MOST

Curve = pd.Series
"""Values by virtual time (s), which increases, or by what was done until then."""

Band = Literal["range", "interval"]
"""What of several seeds a band is: from the least to the greatest, or the mean's t-interval at 95 %."""

Progress = Literal["time", "bytes", "wan_bytes", "iterations", "epochs", "cost"]
"""What a curve may go over: virtual time (s); bytes sent by all workers, or those over the WAN; iterations, the
workers' mean; epochs, the samples that all workers processed over the training samples; or what the run had cost."""


def mean_metric(run: Run) -> Curve:
    """Mean over the workers of the task's metric (accuracy: a fraction), at each evaluation.

    Without what is too large to be reckoned with, of a run that diverged.
    """
    return _known(run.evaluations().groupby("virtual_time")[run.metric.key].mean())


def worker_deviation(run: Run) -> Curve:
    """Standard deviation of the task's metric among the workers, at each evaluation."""
    return _known(run.evaluations().groupby("virtual_time")[run.metric.key].std(ddof=0))


def _known(curve: Curve) -> Curve:
    return curve[curve.abs() <= MOST]


def against(run: Run, curve: Curve, progress: Progress) -> Curve:
    """A curve of the run's, by what was done until each of its times; where nothing was between some, the last of them.

    Raises InputError for epochs of a run whose manifest does not tell the number of training samples, and for the cost
    of one that has no prices.
    """
    if progress == "time":
        return curve
    if progress == "cost":
        moved = pd.Series(curve.to_numpy(), index=costs_until(run, curve.index.tolist()))
    else:
        done = _done(run, progress).sort_index().cumsum()
        places = np.searchsorted(done.index, curve.index, side="right")
        moved = pd.Series(curve.to_numpy(), index=np.concatenate([[0.0], done])[places])
    return moved.groupby(level=0).last()


def _done(run: Run, progress: Literal["bytes", "wan_bytes", "iterations", "epochs"]) -> pd.Series:
    """How much, by the times (s) at which it was done."""
    if progress in ("bytes", "wan_bytes"):
        return run.links().groupby("virtual_time")[progress].sum()
    by_time = run.iterations().groupby("virtual_time")["batch_size"]
    if progress == "iterations":
        return by_time.size() / len(run.manifest["workers"])
    samples = run.manifest.get("training_samples")
    if not samples:
        raise InputError("the run does not tell its number of training samples, so no epochs", file=run.folder)
    return by_time.sum().astype(float) / int(samples)


def of_groups(groups: Sequence[Group], quantity: Callable[[Run], Curve], band: Band) -> list[list[Curve]]:
    """The curves of each group: of all its runs, but for an interval only of those that are independent."""
    return [
        [quantity(run) for run in (group.samples.values() if band == "interval" else ()) or group.runs]
        for group in groups
    ]


def over_seeds(curves: Sequence[Curve], band: Band = "range") -> pd.DataFrame:
    """`mean`, `low` and `high` of some curves by what they go over, as far as all of them get.

    Between its points a curve is a straight line. Curves without points don't count.
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
    """The last value up to a time (s); NaN where the curve begins later or ends before."""
    if not len(curve) or time > curve.index[-1] * (1 + 1e-9):
        return float("nan")
    known = curve[curve.index <= time * (1 + 1e-9)]
    return float(known.iloc[-1]) if len(known) else float("nan")
