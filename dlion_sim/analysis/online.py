"""How workers did on samples as they came, over time, and what of these changed when."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dlion_sim.analysis.curves import Curve
from dlion_sim.errors import InputError
from dlion_sim.results import Run


class Change(NamedTuple):
    """What of a stream changes, and from when to when (s)."""

    what: str
    begin: float
    end: float


def online_accuracy(run: Run) -> Curve:
    """Accuracy of all workers' samples as they came, before they were trained on: of each time between evaluations.

    By its end (s). Raises InputError for a run without a stream.
    """
    arrivals = run.arrivals()
    if arrivals.empty:
        raise InputError("has no samples that came", file=run.folder, allowed="a run with workload: {stream: ...}")
    # A run that was cut off ends without an evaluation.
    ends = np.union1d(run.evaluations()["virtual_time"], arrivals["virtual_time"].max())
    places = np.searchsorted(ends, arrivals["virtual_time"])
    right = arrivals["accuracy"] * arrivals["batch_size"]
    sums = arrivals.assign(right=right).groupby(ends[places])[["right", "batch_size"]].sum()
    return (sums["right"] / sums["batch_size"]).dropna()


def changes(run: Run) -> list[Change]:
    """What of the run's stream changed, in order; what changed from and to the same times is one."""
    named: dict[tuple[float, float], dict[str, None]] = {}
    for change in run.manifest.get("drift", []):
        named.setdefault((change["begin"], change["end"]), {})[change["what"]] = None
    return [Change(", ".join(names), *times) for times, names in sorted(named.items())]
