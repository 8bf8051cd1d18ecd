"""Stalls by run differencing: how much longer an iteration takes with each cause of stalls (Stash, ICDCS'23)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from dlion_sim.analysis.stalls.attribution import LINKS, Stalls
from dlion_sim.analysis.stalls.replay import Replay
from dlion_sim.results import Run

STEPS = ("R0", "R1", "R1x", "R3", "R2", "R4")
"""One worker alone; all workers in one micro-cloud; in their own ones; with samples that have to be prepared; and read;
on the scenario's unequal and changing machines."""
WITH_CHURN = "R5"
"""The scenario with its outages, if it has any; R4 is without."""
_ADDS = {
    "interconnect": ("R0", "R1"),
    "network": ("R1", "R1x"),
    "prep": ("R1x", "R3"),
    "fetch": ("R3", "R2"),
    "straggler": ("R2", "R4"),
    "churn": ("R4", WITH_CHURN),
}
"""Each kind of stall, and the runs without and with it."""
_MAX_ROLLED = 5
"""Losses of each worker in the rolling mean."""


def differences(seconds: Mapping[str, float]) -> pd.DataFrame:
    """By kind of stall: the additional `seconds` of an iteration, their `share` of its time, and the `slowdown`.

    The argument has the seconds of an iteration by step, see `STEPS`; without `WITH_CHURN` there is no stall of churn.
    The share is of the longer time (at most 1), the slowdown of the shorter one. They may be negative: unequal machines
    that wait for each other send at different times, and workers may be faster during outages of others.
    """
    rows = {}
    for kind, (without, with_it) in _ADDS.items():
        if with_it not in seconds:
            continue
        more = seconds[with_it] - seconds[without]
        rows[kind] = more, more / seconds[with_it], more / seconds[without]
    return pd.DataFrame.from_dict(rows, orient="index", columns=["seconds", "share", "slowdown"])


def checks(steps: Mapping[str, Stalls], warm_up: int) -> pd.DataFrame:
    """Stalls by differencing and by one run's timeline, in seconds of an iteration, and the `gap` between them.

    The gap is a fraction of an iteration. `difference` is that of two runs; `timeline` is from the second run alone:
    the waits for messages, or the time that a replay with the durations of the first run saves. The first `warm_up`
    iterations are left out. Only for runs whose workers are in step, with a record of their messages.
    """
    by_run: dict[Path, Replay] = {}

    def replay(step: str) -> Replay:
        run = steps[step].run
        if run.folder not in by_run:
            by_run[run.folder] = Replay(run)
        return by_run[run.folder]

    taken = {name: each.iteration_seconds for name, each in steps.items()}
    without = {
        "prep": replay("R3").iteration_seconds(warm_up, prepared=False),
        "fetch": replay("R2").iteration_seconds(warm_up, read=False),
        "straggler": replay("R4").iteration_seconds(warm_up, computing_as=replay("R2")),
    }
    compared = {
        "communication": ("R0", "R1x", float(steps["R1x"].per_iteration[[*LINKS]].sum())),
        **{kind: (*_ADDS[kind], taken[_ADDS[kind][1]] - seconds) for kind, seconds in without.items()},
    }
    rows = {}
    for what, (first, second, timeline) in compared.items():
        difference = taken[second] - taken[first]
        rows[what] = difference, timeline, abs(difference - timeline) / taken[second]
    return pd.DataFrame.from_dict(rows, orient="index", columns=["difference", "timeline", "gap"])


def seconds_to_loss(runs: Mapping[str, Run]) -> tuple[float, dict[str, float]]:
    """A training loss that all runs reach, and when each first does (s).

    The loss is the rolling mean over up to 5 iterations of each worker.
    """
    curves = {name: _losses(run) for name, run in runs.items()}
    reached = [float(curve.min()) for curve in curves.values() if len(curve)]
    target = max(reached, default=math.nan)
    return target, {name: float(curve.index[curve <= target].min()) for name, curve in curves.items()}


def _losses(run: Run) -> pd.Series:
    """By time (s)."""
    rows = run.iterations().sort_values("virtual_time", kind="stable")
    together = max(1, min(_MAX_ROLLED * rows["worker"].nunique(), len(rows)))
    return rows.set_index("virtual_time")["loss"].rolling(together).mean().dropna()
