"""How many workers were there over time, and what was of use of what they computed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

from dlion_sim.analysis.curves import Curve
from dlion_sim.analysis.outages import absences
from dlion_sim.errors import InputError
from dlion_sim.results import Run


class Goodput(NamedTuple):
    """Samples of a second of the run, over all workers."""

    useful: float
    """In the state that somebody has."""
    lost: float
    """Computed in vain."""


def availability(run: Run) -> Curve:
    """How many workers' processes run, by the time (s) from which on; the last point is the run's end.

    Raises InputError for a run in which nobody could go.
    """
    workers, end = len(run.manifest.get("workers", [])), _outcome(run)["virtual_seconds"]
    away = chain.from_iterable(intervals for number, intervals in absences(run).items() if number < workers)
    changes = [(0.0, workers), *chain.from_iterable(((begin, -1), (back, 1)) for begin, back in away)]
    steps = pd.DataFrame(changes, columns=["time", "change"]).groupby("time")["change"].sum().cumsum()
    there: Curve = steps[steps.index <= end]
    there.loc[end] = there.iloc[-1]
    return there


def goodput(run: Run) -> Goodput:
    """What of the samples that a run computed was of use. Raises InputError for a run in which nobody could go."""
    outcome = _outcome(run)
    told, seconds = outcome["availability"], outcome["virtual_seconds"] or 1.0
    return Goodput(told["useful"] / seconds, (told["computed"] - told["useful"]) / seconds)


def _outcome(run: Run) -> Mapping[str, Any]:
    outcome = run.outcome
    if "availability" not in outcome:
        raise InputError("is a run in which nobody could go", file=run.folder, allowed="one with availability")
    return outcome
