"""Curves of many groups of runs, with no more points than a page can hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlion_sim.analysis import metric_of
from dlion_sim.analysis.curves import Progress, against, mean_metric, over_seeds
from dlion_sim.analysis.groups import Group
from dlion_sim.figures.style import DECADE, time_unit
from dlion_sim.report import thinning
from dlion_sim.results import Run, traffic_of
from dlion_sim.results.numbers import byte_unit

_MOST_POINTS, _MOST_OF_ONE, _FEWEST_OF_ONE = 100_000, 500, 20
"""Of all lines over one quantity, and of a line among few and among many."""
_DIGITS = 5
_KEPT_OF_BUCKET = 8
"""Points of three lines, of which each needs four at most, and often the same."""


def curves(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The metric's mean over seeds, as it went over time, bytes sent and, where all runs have prices, cost.

    An entry each: `key`, `title`, `unit`, whether its axis is `logarithmic`, and `groups`, of each group `x`, `mean`,
    `low` and `high` (least and greatest of the seeds), in the unit and as the metric is shown. They are of a group's
    completed runs; where it has none, of all its runs.
    """
    of_groups = [[(run, mean_metric(run)) for run in group.completed or group.runs] for group in groups]
    runs = [run for group in groups for run in group.runs]
    over: list[Progress] = ["time", traffic_of(runs).links]
    if runs and all("tariff" in run.manifest for run in runs):
        over.append("cost")
    most = min(max(_MOST_POINTS // max(len(groups), 1), _FEWEST_OF_ONE), _MOST_OF_ONE)
    scale = metric_of(groups).scale if runs else 1.0
    told = []
    for progress in over:
        tables = [over_seeds([against(run, curve, progress) for run, curve in each]) * scale for each in of_groups]
        size, unit, title = _horizontal(progress, tables, runs)
        told.append(
            {
                "key": progress,
                "title": title,
                "unit": unit,
                "logarithmic": progress in ("bytes", "wan_bytes") and _is_wide(tables),
                "groups": [_told(thinned(table, most), size) for table in tables],
            }
        )
    return told


def thinned(table: pd.DataFrame, most: int) -> pd.DataFrame:
    """About so many of the rows of a table of lines over its index, at most: each line looks as it did."""
    if len(table) <= most:
        return table
    index = table.index.to_numpy(dtype=float)
    kept = [thinning.line(index, table[name].to_numpy(), most // _KEPT_OF_BUCKET) for name in table]
    return table.iloc[np.unique(np.concatenate(kept))]


def _is_wide(tables: Sequence[pd.DataFrame]) -> bool:
    """Whether a line ends at a tenth of another's end, or sooner."""
    ends = [float(table.index[-1]) for table in tables if len(table) > 1]
    return bool(ends) and max(ends) > DECADE * min(ends)


def _horizontal(progress: Progress, tables: Sequence[pd.DataFrame], runs: Sequence[Run]) -> tuple[float, str, str]:
    """What one of the horizontal axis's unit is, the unit, and what the axis shows."""
    end = max((float(table.index[-1]) for table in tables if len(table)), default=1.0)
    match progress:
        case "time":
            return *time_unit(end), "Virtual time" if all(run.is_virtual for run in runs) else "Time"
        case "bytes" | "wan_bytes":
            return *byte_unit(end), traffic_of(runs).title
        case _:
            return 1.0, "", "Cost"


def _told(table: pd.DataFrame, size: float) -> dict[str, list[float]]:
    columns = {"x": table.index.to_numpy(dtype=float) / size}
    columns |= {name: table[name].to_numpy(dtype=float) for name in ("mean", "low", "high")}
    return {name: [float(f"{value:.{_DIGITS}g}") for value in values] for name, values in columns.items()}
