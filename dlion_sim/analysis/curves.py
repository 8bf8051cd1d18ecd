"""How a quantity of a run goes over time, and its mean and spread over seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dlion_sim.results import Run

Curve = pd.Series
"""Values by virtual time (s), which increases."""


def mean_accuracy(run: Run) -> Curve:
    """Mean accuracy (fraction) over the workers, at each evaluation."""
    return run.evaluations().groupby("virtual_time")["accuracy"].mean().dropna()


def worker_deviation(run: Run) -> Curve:
    """Standard deviation of the accuracy (fraction) among the workers, at each evaluation."""
    return run.evaluations().groupby("virtual_time")["accuracy"].std(ddof=0).dropna()


def over_seeds(curves: Sequence[Curve]) -> pd.DataFrame:
    """`mean`, `low` and `high` of some curves by time, up to the last time that all of them reach.

    Between its points a curve is a straight line. Curves without points don't count.
    """
    curves = [curve for curve in curves if len(curve)]
    if not curves:
        return pd.DataFrame({"mean": [], "low": [], "high": []})
    end = min(curve.index[-1] for curve in curves)
    times = np.unique(np.concatenate([curve.index[curve.index <= end] for curve in curves]))
    values = np.array([np.interp(times, curve.index, curve) for curve in curves])
    return pd.DataFrame({"mean": values.mean(axis=0), "low": values.min(axis=0), "high": values.max(axis=0)}, times)


def at(curve: Curve, time: float) -> float:
    """The last value up to a time (s); NaN where the curve begins later or ends before."""
    if not len(curve) or time > curve.index[-1] * (1 + 1e-9):
        return float("nan")
    known = curve[curve.index <= time * (1 + 1e-9)]
    return float(known.iloc[-1]) if len(known) else float("nan")
