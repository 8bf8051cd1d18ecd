"""The metric over time, bytes and cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dlion_sim.analysis.curves import progress_at
from dlion_sim.report.lines import MAX_WORKERS
from dlion_sim.report.thinning import packed
from dlion_sim.results import Run, traffic_of
from dlion_sim.results.json_document import MOST

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
    names = run.manifest["workers"]
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
