"""How good the workers were, over time, bytes and money."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dlion_sim.analysis.cost import costs_until
from dlion_sim.report.lines import MAX_WORKERS
from dlion_sim.report.thinning import packed
from dlion_sim.results import Run, traffic_of
from dlion_sim.results.json_document import MOST

_MOST_EVALUATIONS = 1000
"""That are drawn; of more, some are left out."""


def metric_over(run: Run, metrics: pd.DataFrame, links: pd.DataFrame) -> dict[str, Any]:
    """The metric at each evaluation: its `mean`, `low` and `high` over the workers, and what had been sent and spent.

    `times` are in seconds, `bytes` those that `traffic` is the title of, `cost` in the currency of the run's prices,
    None without any; `workers` has the values of each, a row a worker, where they are few.
    """
    metric = run.metric
    rows = metrics[(metrics["kind"] == "evaluation") & (metrics[metric.key].abs() <= MOST)]
    values = rows[metric.key] * metric.scale
    table = values.groupby(rows["virtual_time"]).agg(["mean", "min", "max"])
    every = -(-max(len(table), 1) // _MOST_EVALUATIONS)
    # The last one is what the run has come to.
    table = table.iloc[::-1].iloc[::every].iloc[::-1]
    times = table.index.to_numpy(dtype=float)
    traffic = traffic_of([run])
    sent = links.groupby("virtual_time")[traffic.links].sum().sort_index().cumsum()
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
        "bytes": np.concatenate([[0.0], sent])[np.searchsorted(sent.index, times, side="right")].tolist(),
        "cost": costs_until(run, times.tolist()) if "tariff" in run.manifest else None,
        "workers": _of_each(rows, values, times, len(names)) if 1 < len(names) <= MAX_WORKERS else None,
        "names": names if len(names) <= MAX_WORKERS else [],
        "target": run.target,
        "scale": metric.scale,
    }


def _of_each(rows: pd.DataFrame, values: pd.Series, times: np.ndarray, workers: int) -> list[dict[str, str]]:
    """A row of values at the times for each worker; NaN where it was not there."""
    by_worker = values.groupby([rows["worker"], rows["virtual_time"]]).last().unstack("virtual_time")
    table = by_worker.reindex(index=range(workers), columns=times)
    return [packed(row) for row in table.to_numpy(dtype=float)]
