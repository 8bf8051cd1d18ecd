"""The metric over time, bytes and cost, and quantities of iterations: staleness, batch sizes, and N of Max-N."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlion_sim.analysis.curves import progress_at
from dlion_sim.figures.panels import worker_groups
from dlion_sim.report import thinning
from dlion_sim.report.thinning import packed
from dlion_sim.results import Run, traffic_of
from dlion_sim.results.json_document import MOST

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


_MAX_EVALUATIONS = 1000
"""The most evaluations that are drawn; of more, some are left out."""


def metric_over(run: Run, metrics: pd.DataFrame) -> dict[str, Any]:
    """The metric at each evaluation: `mean`, `low` and `high` over the workers, with bytes sent and cost until then.

    `times` are in seconds, `bytes` those with the title `traffic`, `cost` in the currency of the run's prices, None
    without any; `workers` has the values of each, unless they are many.
    """
    metric = run.metric
    rows = metrics[(metrics["kind"] == "evaluation") & (metrics[metric.key].abs() <= MOST)]
    values = rows[metric.key] * metric.scale
    table = values.groupby(rows["virtual_time"]).agg(["mean", "min", "max"])
    every = -(-max(len(table), 1) // _MAX_EVALUATIONS)
    # Keep the last one.
    table = table.iloc[::-1].iloc[::every].iloc[::-1]
    times = table.index.to_numpy(dtype=float)
    traffic = traffic_of([run])
    names = [] if run.evaluates_server else run.manifest["workers"]
    return {
        "name": metric.name,
        "on": run.evaluated_on,
        "unit": metric.axis,
        "times": times.tolist(),
        "mean": table["mean"].tolist(),
        "low": table["min"].tolist(),
        "high": table["max"].tolist(),
        "traffic": traffic.title,
        "bytes_name": f"{traffic.name} bytes",
        "bytes": progress_at(run, times.tolist(), traffic.links),
        "cost": progress_at(run, times.tolist(), "cost") if "tariff" in run.manifest else None,
        "workers": _by_worker(rows, values, times, len(names)) if 1 < len(names) <= MAX_WORKERS else None,
        "names": names if len(names) <= MAX_WORKERS else [],
        "target": run.target,
        "scale": metric.scale,
    }


def _by_worker(rows: pd.DataFrame, values: pd.Series, times: np.ndarray, workers: int) -> list[dict[str, str]]:
    """A row of values at the times for each worker; NaN if it was not evaluated."""
    by_worker = values.groupby([rows["worker"], rows["virtual_time"]]).last().unstack("virtual_time")
    table = by_worker.reindex(index=range(workers), columns=times)
    return [packed(row) for row in table.to_numpy(dtype=float)]
