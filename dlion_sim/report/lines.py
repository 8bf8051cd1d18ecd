"""What changes from iteration to iteration: staleness, batch sizes, and N of Max-N."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlion_sim.report import thinning
from dlion_sim.report.thinning import packed
from dlion_sim.results import Run, clouds_of

MAX_WORKERS = 8
"""The most workers that have a line each; more are grouped by micro-cloud, or all together."""
_MAX_CLOUDS = 8
_BUCKETS = 500
"""Of time."""
_AT_ONCE, _UNTIL = "hv", "vh"
"""Whether a line goes on at the value of a time, as what an iteration was told, or has come at it, as an interval's."""


def lines_of(run: Run, metrics: pd.DataFrame, links: pd.DataFrame, end: float) -> list[dict[str, Any]]:
    """A quantity each: its `name`, `unit`, and `lines`; quantities that no worker has are left out.

    A line of one worker has the `times` (s) and `values` that the eye needs; one of several has means over them, and
    `low` and `high`.
    """
    iterations = metrics[metrics["kind"] == "iteration"]
    who = _groups(run)
    told = [
        ("Staleness", "iterations behind", _AT_ONCE, _of_iterations(iterations, "staleness")),
        ("Batch size", "samples", _AT_ONCE, _of_iterations(iterations, "batch_size")),
        ("N of Max-N, by sender", "%", _UNTIL, _n_percent(links)),
    ]
    return [
        {"name": name, "unit": unit, "lines": lines}
        for name, unit, step, table in told
        if (lines := list(_lines(table, step, who, end)))
    ]


def _groups(run: Run) -> dict[str, list[int]]:
    """The workers of each line, by the line's name."""
    names = run.manifest["workers"]
    if len(names) <= MAX_WORKERS:
        return {name: [worker] for worker, name in enumerate(names)}
    by_cloud: dict[str, list[int]] = {}
    for worker, cloud in enumerate(clouds_of(run.manifest)[: len(names)]):
        by_cloud.setdefault(cloud, []).append(worker)
    if 1 < len(by_cloud) <= _MAX_CLOUDS:
        return {f"{cloud} ({len(workers)} workers)": workers for cloud, workers in by_cloud.items()}
    return {f"all {len(names)} workers": list(range(len(names)))}


def _of_iterations(iterations: pd.DataFrame, column: str) -> pd.DataFrame:
    """A row a value: `worker`, `virtual_time` (s), `value`."""
    return iterations[["worker", "virtual_time", column]].dropna().rename(columns={column: "value"})


def _n_percent(links: pd.DataFrame) -> pd.DataFrame:
    """The same of senders: the mean over the messages of each interval."""
    known = links.dropna(subset=["n_percent"])
    known = known.assign(weighted=known["n_percent"] * known["gradients"])
    sums = known.groupby(["sender", "virtual_time"], as_index=False)[["weighted", "gradients"]].sum()
    sums = sums[sums["gradients"] > 0].rename(columns={"sender": "worker"})
    return sums.assign(value=sums["weighted"] / sums["gradients"])[["worker", "virtual_time", "value"]]


def _lines(table: pd.DataFrame, step: str, who: dict[str, list[int]], end: float) -> Iterator[dict[str, Any]]:
    table = table.sort_values("virtual_time", kind="stable")
    for place, (name, workers) in enumerate(who.items()):
        own = table if len(who) == 1 else table[table["worker"].isin(workers)]
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
