"""Quantities of iterations over time: staleness, batch sizes, and N of Max-N."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlion_sim.figures.panels import worker_groups
from dlion_sim.report import thinning
from dlion_sim.report.thinning import packed
from dlion_sim.results import Run

MAX_WORKERS = 8
"""The most workers that have a line each; more are grouped by micro-cloud, by machine, or all together."""
_BUCKETS = 500
"""The number of intervals of time that lines are reduced to."""
_AFTER, _BEFORE = "hv", "vh"
"""Plotly's step shapes: a value holds after its time (of an iteration), or before it (of an interval)."""


def lines_of(run: Run, metrics: pd.DataFrame, links: pd.DataFrame, end: float) -> list[dict[str, Any]]:
    """The quantities that any worker has: `name`, `unit`, and `lines`.

    A line of one worker has reduced `times` (s) and `values`; one of several has their means, `low` and `high`.
    """
    iterations = metrics[metrics["kind"] == "iteration"]
    groups = worker_groups(run, MAX_WORKERS)
    quantities = [
        ("Staleness", "iterations behind", _AFTER, _of_iterations(iterations, "staleness")),
        ("Batch size", "samples", _AFTER, _of_iterations(iterations, "batch_size")),
        ("N of Max-N, by sender", "%", _BEFORE, _n_percent(links)),
    ]
    return [
        {"name": name, "unit": unit, "lines": lines}
        for name, unit, step, table in quantities
        if (lines := list(_lines(table, step, groups, end)))
    ]


def _of_iterations(iterations: pd.DataFrame, column: str) -> pd.DataFrame:
    """A row for each value: `worker`, `virtual_time` (s), `value`."""
    return iterations[["worker", "virtual_time", column]].dropna().rename(columns={column: "value"})


def _n_percent(links: pd.DataFrame) -> pd.DataFrame:
    """The same for senders: the mean over the messages of each interval."""
    known = links.dropna(subset=["n_percent"])
    known = known.assign(weighted=known["n_percent"] * known["gradients"])
    sums = known.groupby(["sender", "virtual_time"], as_index=False)[["weighted", "gradients"]].sum()
    sums = sums[sums["gradients"] > 0].rename(columns={"sender": "worker"})
    return sums.assign(value=sums["weighted"] / sums["gradients"])[["worker", "virtual_time", "value"]]


def _lines(table: pd.DataFrame, step: str, groups: dict[str, list[int]], end: float) -> Iterator[dict[str, Any]]:
    table = table.sort_values("virtual_time", kind="stable")
    for place, (name, workers) in enumerate(groups.items()):
        own = table if len(groups) == 1 else table[table["worker"].isin(workers)]
        if len(own):
            times, values = (own[column].to_numpy(dtype=float) for column in ("virtual_time", "value"))
            yield {"name": name, "place": place, "step": step, **_thinned(times, values, workers, end)}


def _thinned(times: np.ndarray, values: np.ndarray, workers: Sequence[int], end: float) -> dict[str, Any]:
    if len(workers) == 1:
        kept = thinning.line(times, values, _BUCKETS)
        return {"times": packed(times[kept], "f8"), "values": packed(values[kept])}
    band = thinning.band(times, values, end, _BUCKETS)
    return {
        "times": packed(band.index, "f8"),
        "values": packed(band["mean"]),
        "low": packed(band["low"]),
        "high": packed(band["high"]),
    }
