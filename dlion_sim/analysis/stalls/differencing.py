"""Stalls by run differencing: what an iteration takes longer with each thing that may hold it up (Stash, ICDCS'23)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from dlion_sim.analysis.stalls.attribution import LINKS, Stalls
from dlion_sim.analysis.stalls.replay import Replay
from dlion_sim.results import Run

STEPS = ("R0", "R1", "R1x", "R3", "R2", "R4")
"""One worker alone; all workers as if in one micro-cloud; in their own ones; with samples that have to be prepared; and
read as well; on machines as unequal and changing as they are."""
WITH_CHURN = "R5"
"""And whose workers come and go, and whose links break, if the scenario's do: R4 is without."""
_ADDS = {
    "interconnect": ("R0", "R1"),
    "network": ("R1", "R1x"),
    "prep": ("R1x", "R3"),
    "fetch": ("R3", "R2"),
    "straggler": ("R2", "R4"),
    "churn": ("R4", WITH_CHURN),
}
"""Each kind of stall, and the runs without and with it."""
_MOST_ROLLED = 5
"""Losses of each worker that are told as their mean."""


def differences(seconds: Mapping[str, float]) -> pd.DataFrame:
    """By kind of stall: `seconds` that an iteration takes longer, `share` of its time with it, and `slowdown`.

    `seconds` are what an iteration takes by step, see `STEPS`; without `WITH_CHURN` there is no such stall. The share
    is of the longer time, the slowdown of the shorter one: the one cannot exceed 1. Negative where something hides it:
    unequal machines that wait for each other send at different times; who stays is faster without who has gone.
    """
    rows = {}
    for kind, (without, with_it) in _ADDS.items():
        if with_it not in seconds:
            continue
        more = seconds[with_it] - seconds[without]
        rows[kind] = more, more / seconds[with_it], more / seconds[without]
    return pd.DataFrame.from_dict(rows, orient="index", columns=["seconds", "share", "slowdown"])


def checks(steps: Mapping[str, Stalls], warm_up: int) -> pd.DataFrame:
    """What differencing and one run's timeline tell of the same, in seconds of an iteration, and the `gap` of them.

    The gap is a fraction of what an iteration takes. `difference` is that of two runs, `timeline` what the second one
    alone tells: of communication what its workers waited for messages, of the others what its iterations would take
    less, gone through again with the durations of the first. The first `warm_up` iterations are left out. Only for runs
    whose workers are in step, with a record of their messages.
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
    told = {
        "communication": ("R0", "R1x", float(steps["R1x"].per_iteration[[*LINKS]].sum())),
        **{kind: (*_ADDS[kind], taken[_ADDS[kind][1]] - seconds) for kind, seconds in without.items()},
    }
    rows = {}
    for what, (first, second, timeline) in told.items():
        difference = taken[second] - taken[first]
        rows[what] = difference, timeline, abs(difference - timeline) / taken[second]
    return pd.DataFrame.from_dict(rows, orient="index", columns=["difference", "timeline", "gap"])


def seconds_to_loss(runs: Mapping[str, Run]) -> tuple[float, dict[str, float]]:
    """A training loss that all runs reach, and when each first does (s).

    The loss is the mean over the last iterations of all workers: of as many as 5 of each.
    """
    curves = {name: _losses(run) for name, run in runs.items()}
    reached = [float(curve.min()) for curve in curves.values() if len(curve)]
    target = max(reached, default=math.nan)
    return target, {name: float(curve.index[curve <= target].min()) for name, curve in curves.items()}


def _losses(run: Run) -> pd.Series:
    """By time (s)."""
    rows = run.iterations().sort_values("virtual_time", kind="stable")
    together = max(1, min(_MOST_ROLLED * rows["worker"].nunique(), len(rows)))
    return rows.set_index("virtual_time")["loss"].rolling(together).mean().dropna()
