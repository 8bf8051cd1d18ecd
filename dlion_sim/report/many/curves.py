"""Curves of many groups of runs, reduced to what a page can hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlion_sim.analysis import metric_of
from dlion_sim.analysis.curves import Progress, against, mean_metric, over_seeds
from dlion_sim.analysis.groups import Group
from dlion_sim.figures.style import DECADE, progress_unit
from dlion_sim.report import thinning
from dlion_sim.results import traffic_of

_MAX_POINTS, _MAX_OF_LINE, _MIN_OF_LINE = 100_000, 500, 20
"""Points of all lines over one quantity, and of a line among few and among many."""
_DIGITS = 5
_KEPT_OF_BUCKET = 8
"""Points of three lines per bucket, with at most four each, partly the same."""


def curves(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The metric's mean over seeds, over time, bytes sent and, if all runs have prices, cost.

    Each has `key`, `title`, `unit`, whether its axis is `logarithmic`, and `groups`: for each group `x`, `mean`, `low`
    and `high` over seeds, in units of display. They are over a group's completed runs, or all if none is completed.
    """
    of_groups = [[(run, mean_metric(run)) for run in group.completed or group.runs] for group in groups]
    runs = [run for group in groups for run in group.runs]
    over: list[Progress] = ["time", traffic_of(runs).links]
    if runs and all("tariff" in run.manifest for run in runs):
        over.append("cost")
    most = min(max(_MAX_POINTS // max(len(groups), 1), _MIN_OF_LINE), _MAX_OF_LINE)
    scale = metric_of(groups).scale if runs else 1.0
    found = []
    for progress in over:
        tables = [over_seeds([against(run, curve, progress) for run, curve in each]) * scale for each in of_groups]
        end = max((float(table.index[-1]) for table in tables if len(table)), default=1.0)
        size, unit, title = progress_unit(progress, end, runs)
        found.append(
            {
                "key": progress,
                "title": title,
                "unit": unit,
                "logarithmic": progress in ("bytes", "wan_bytes") and _is_wide(tables),
                "groups": [_rounded(thinned(table, most), size) for table in tables],
            }
        )
    return found


def thinned(table: pd.DataFrame, most: int) -> pd.DataFrame:
    """At most about so many rows of a table of lines; each line looks the same."""
    if len(table) <= most:
        return table
    index = table.index.to_numpy(dtype=float)
    kept = [thinning.line(index, table[name].to_numpy(), most // _KEPT_OF_BUCKET) for name in table]
    return table.iloc[np.unique(np.concatenate(kept))]


def _is_wide(tables: Sequence[pd.DataFrame]) -> bool:
    """Whether ends of lines differ tenfold."""
    ends = [float(table.index[-1]) for table in tables if len(table) > 1]
    return bool(ends) and max(ends) > DECADE * min(ends)


def _rounded(table: pd.DataFrame, size: float) -> dict[str, list[float]]:
    columns = {"x": table.index.to_numpy(dtype=float) / size}
    columns |= {name: table[name].to_numpy(dtype=float) for name in ("mean", "low", "high")}
    return {name: [float(f"{value:.{_DIGITS}g}") for value in values] for name, values in columns.items()}
