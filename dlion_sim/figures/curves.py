"""Figures of curves over time or progress: means over seeds as lines, their ranges or intervals as bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from dlion_sim.analysis.curves import (
    Band,
    Curve,
    Drift,
    Progress,
    against,
    drift_intervals,
    mean_metric,
    of_groups,
    online_accuracy,
    over_seeds,
    worker_deviation,
)
from dlion_sim.analysis.groups import Group, metric_label, metric_name, metric_of
from dlion_sim.analysis.outages import common_outages
from dlion_sim.figures.looks import Look
from dlion_sim.figures.panels import Grid, Panels, rows_of
from dlion_sim.figures.style import (
    BANDS,
    DECADE,
    WIDE,
    WIDTH,
    drawing,
    legend_below,
    make_logarithmic,
    of_seeds,
    progress_unit,
    shade,
    write_empty,
)
from dlion_sim.metric import ACCURACY, PERPLEXITY
from dlion_sim.results import Run, traffic_of
from dlion_sim.results.numbers import in_bytes

_PANEL_HEIGHT = 1.6
_MOST_PERCENT = 105.0
"""The upper limit of an axis of accuracies, whatever the interval of their mean."""
_PANELS_IN_A_COLUMN = 3
"""More panels are set in two columns, across both of the paper's."""


def plot_accuracies(groups: Sequence[Group], file: Path, progress: Progress = "time", band: Band = "range") -> Path:
    """Draw the groups' accuracy, or another metric, over time or other `progress` to `file`, and return `file`.

    `progress` "bytes" is over the WAN if a run has one. Lines are means over seeds and bands their range, or the mean's
    95 % interval, up to the end of the shortest run. Over time a panel is shaded while a participant or a path was down
    in all of its runs. Raises InputError as `against`, and if a file cannot be read or written.
    """
    if progress == "bytes":
        progress = traffic_of(run for group in groups for run in group.runs).links
    return _plot(groups, file, mean_metric, metric_label(groups), progress, band)


def plot_deviation(groups: Sequence[Group], file: Path, band: Band = "range") -> Path:
    """Draw the standard deviation of the metric among the workers of each group; otherwise as `plot_accuracies`."""
    points = "\n(percentage points)" * (metric_of(groups) == ACCURACY)
    label = f"Deviation among workers\nof {metric_name(groups)}{points}"
    return _plot(groups, file, worker_deviation, label, band=band)


def plot_online(groups: Sequence[Group], file: Path, band: Band = "range") -> Path:
    """Draw the online accuracy over time, with drifts as bands or lines, to `file`, and return `file`.

    Raises InputError for a run without a stream, and if a file cannot be read or written.
    """
    return _plot(groups, file, online_accuracy, "Online accuracy (%)", band=band, marks_drift=True)


def _plot(
    groups: Sequence[Group],
    file: Path,
    quantity: Callable[[Run], Curve],
    label: str,
    progress: Progress = "time",
    band: Band = "range",
    *,
    marks_drift: bool = False,
) -> Path:
    panels = Panels(groups)
    curves = of_groups(groups, lambda run: against(run, quantity(run), progress), band)
    counts = [sum(len(curve) > 0 for curve in of_group) for of_group in curves]
    tables = [over_seeds(of_group, band) * metric_of(groups).scale for of_group in curves]
    end = max((table.index[-1] for table in tables if len(table)), default=1.0)
    begin = _logarithmic_begin(tables, progress)
    unit, name, x_title = progress_unit(progress, end, [run for group in groups for run in group.runs])
    columns = 1 if len(panels.panels) <= _PANELS_IN_A_COLUMN else 2
    height = 0.75 + _PANEL_HEIGHT * rows_of(panels, columns)
    with drawing(file, height=height, width=WIDTH if columns == 1 else WIDE) as figure:
        grid = Grid(figure, panels, columns)
        handles = {}
        down: dict[str, Patch] = {}
        for number, axes in enumerate(grid.axes):
            runs = [run for group in groups if panels.panel(group) == number for run in group.runs]
            if marks_drift:
                _mark_drift(axes, drift_intervals(runs[-1]), unit)
            elif progress == "time":
                down |= shade([axes], common_outages(runs), end, unit)
        for group, table in zip(groups, tables, strict=True):
            line = panels.line(group)
            if len(table):
                axes = grid.axes[panels.panel(group)]
                shown = table[table.index >= begin]
                handles[line] = draw_curve(axes, shown.set_index(shown.index / unit), panels.looks[line])
        for axes in grid.axes:
            if begin:
                make_logarithmic(axes, "x", end / begin, lambda value: in_bytes(value * unit))
            axes.set_xlim(begin / unit, end / unit or 1)
            if metric_of(groups) == PERPLEXITY:
                make_logarithmic(axes, "y", DECADE)
            else:
                axes.set_ylim(0, min(axes.get_ylim()[1], _MOST_PERCENT) if metric_of(groups) == ACCURACY else None)
            if not axes.lines:
                write_empty(axes, "no evaluation")
        grid.label(f"{x_title} ({name})" if name and not begin else x_title, label)
        known = sorted(handles) if len(panels.lines) > 1 else []
        legend_below(
            figure,
            [*(handles[line] for line in known), *down.values()],
            [*(panels.names[line] for line in known), *down],
            [*of_seeds(BANDS[band], counts, groups), *panels.notes],
        )
    return file


def _logarithmic_begin(tables: Sequence[pd.DataFrame], progress: Progress) -> float:
    """The begin of a logarithmic axis of bytes, used if ends of lines differ tenfold; 0 for a linear axis."""
    ends = [table.index[-1] for table in tables if len(table) > 1]
    if progress not in ("bytes", "wan_bytes") or not ends or max(ends) <= DECADE * min(ends):
        return 0.0
    return min(float(table.index[1]) for table in tables if len(table) > 1)


def _mark_drift(axes: Axes, drifts: Sequence[Drift], unit: float) -> None:
    for what, begin, end in drifts:
        axes.axvspan(begin / unit, end / unit, color="0.85", zorder=0)
        axes.text(
            *(end / unit, 0.03), f" {what}", transform=axes.get_xaxis_transform(), size=6, color="0.35", va="bottom"
        )


def draw_curve(axes: Axes, table: pd.DataFrame, look: Look) -> object:
    """Draw a table of `mean`, `low` and `high` as a line and a band; returns the legend handle."""
    axes.fill_between(table.index, table["low"], table["high"], color=look.colour, alpha=0.2, linewidth=0)
    return axes.plot(table.index, table["mean"], **look.line())[0]
