"""What systems come to over time, or over what they do: means over seeds as lines, their ranges as bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from dlion_sim.analysis.curves import (
    Band,
    Curve,
    Progress,
    against,
    mean_metric,
    of_groups,
    over_seeds,
    worker_deviation,
)
from dlion_sim.analysis.groups import Group, metric_name, metric_of
from dlion_sim.analysis.online import Change, changes, online_accuracy
from dlion_sim.analysis.outages import Interval, down_in_all
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
    say_nothing_there,
    shade,
    time_label,
    time_unit,
)
from dlion_sim.metric import ACCURACY, PERPLEXITY
from dlion_sim.results import Run, Traffic, traffic_of
from dlion_sim.results.numbers import byte_unit, in_bytes

_PANEL_HEIGHT = 1.6
_MOST_PERCENT = 105.0
"""Up to which an axis of accuracies goes, whatever the interval of their mean."""
_PANELS_IN_A_COLUMN = 3
"""More are set in two columns, across both of the paper's."""


def plot_accuracies(groups: Sequence[Group], file: Path, progress: Progress = "time", band: Band = "range") -> Path:
    """Draw how the groups' accuracy, or another metric, went to `file` (.png, .svg or .pdf), and return `file`.

    It is drawn over virtual time, or over other `progress`: bytes sent by all workers (over the WAN, where
    a run has one), iterations (the workers' mean),
    epochs (samples that all workers processed over training samples) or cost. Lines are means over seeds and bands
    their range, or the mean's 95 % interval, as far as all seeds get. Over time a panel is shaded where somebody or a
    path was down in all of its runs. Raises InputError where a run cannot be read, does not tell what epochs are or has
    no prices, or the file cannot be written.
    """
    label = f"{metric_name(groups).capitalize()}{metric_of(groups).axis}"
    if progress == "bytes":
        progress = _traffic(groups).links
    return _plot(groups, file, mean_metric, label, progress, band, outages=down_in_all)


def plot_deviation(groups: Sequence[Group], file: Path, band: Band = "range") -> Path:
    """Draw how far apart the workers of each group are: the standard deviation of their metric over time.

    A panel is shaded where somebody or a path was down in all of its runs. Draws to `file` (.png, .svg or .pdf) and
    returns it. Raises InputError where a run cannot be read or the file cannot be written.
    """
    points = "\n(percentage points)" * (metric_of(groups) == ACCURACY)
    label = f"Deviation among workers\nof {metric_name(groups)}{points}"
    return _plot(groups, file, worker_deviation, label, band=band, outages=down_in_all)


def plot_online(groups: Sequence[Group], file: Path, band: Band = "range") -> Path:
    """Draw the accuracy of samples as they came over time, with what of them changed as bands or lines.

    Draws to `file` (.png, .svg or .pdf) and returns it. Raises InputError for a run without a stream, or one that
    cannot be read, or where the file cannot be written.
    """
    return _plot(groups, file, online_accuracy, "Online accuracy (%)", band=band, changes=changes)


def _plot(
    groups: Sequence[Group],
    file: Path,
    quantity: Callable[[Run], Curve],
    label: str,
    progress: Progress = "time",
    band: Band = "range",
    changes: Callable[[Run], Sequence[Change]] = lambda run: (),
    outages: Callable[[Sequence[Run]], Sequence[Interval]] = lambda runs: (),
) -> Path:
    panels = Panels.of(groups)
    curves = of_groups(groups, lambda run: against(run, quantity(run), progress), band)
    counts = [sum(len(curve) > 0 for curve in of_group) for of_group in curves]
    tables = [over_seeds(of_group, band) * metric_of(groups).scale for of_group in curves]
    end = max((table.index[-1] for table in tables if len(table)), default=1.0)
    begin = _logarithmic_begin(tables, progress)
    unit, x_label = _horizontal(groups, end, progress, with_unit=not begin)
    columns = 1 if len(panels.panels) <= _PANELS_IN_A_COLUMN else 2
    height = 0.75 + _PANEL_HEIGHT * rows_of(panels, columns)
    with drawing(file, height=height, width=WIDTH if columns == 1 else WIDE) as figure:
        grid = Grid(figure, panels, columns)
        handles = {}
        down: dict[str, Patch] = {}
        for number, axes in enumerate(grid.axes):
            runs = [run for group in groups if panels.panel(group) == number for run in group.runs]
            _mark(axes, changes(runs[-1]), unit)
            if progress == "time":
                down |= shade([axes], outages(runs), end, unit)
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
                say_nothing_there(axes, "no evaluation")
        grid.label(x_label, label)
        known = sorted(handles) if len(panels.lines) > 1 else []
        legend_below(
            figure,
            [*(handles[line] for line in known), *down.values()],
            [*(panels.names[line] for line in known), *down],
            [*of_seeds(BANDS[band], counts, groups), *panels.notes],
        )
    return file


def _logarithmic_begin(tables: Sequence[pd.DataFrame], progress: Progress) -> float:
    """Where an axis of bytes begins that is logarithmic, as a line ends at a tenth of another's; 0 for a linear one."""
    ends = [table.index[-1] for table in tables if len(table) > 1]
    if progress not in ("bytes", "wan_bytes") or not ends or max(ends) <= DECADE * min(ends):
        return 0.0
    return min(float(table.index[1]) for table in tables if len(table) > 1)


def _traffic(groups: Sequence[Group]) -> Traffic:
    return traffic_of(run for group in groups for run in group.runs)


def _horizontal(groups: Sequence[Group], end: float, progress: Progress, *, with_unit: bool) -> tuple[float, str]:
    """What one of the horizontal axis's unit is, and the axis's label."""
    match progress:
        case "time":
            seconds, name = time_unit(end)
            return seconds, time_label(groups[0].runs[0], name)
        case "bytes" | "wan_bytes":
            size, name = byte_unit(end)
            return size, _traffic(groups).title + f" ({name})" * with_unit
        case "iterations":
            return 1.0, "Iterations (mean of the workers)"
        case "epochs":
            return 1.0, "Epochs (samples of all workers / training samples)"
        case "cost":
            return 1.0, "Cost"


def _mark(axes: Axes, changes: Sequence[Change], unit: float) -> None:
    for what, begin, end in changes:
        axes.axvspan(begin / unit, end / unit, color="0.85", zorder=0)
        axes.text(
            *(end / unit, 0.03), f" {what}", transform=axes.get_xaxis_transform(), size=6, color="0.35", va="bottom"
        )


def draw_curve(axes: Axes, table: pd.DataFrame, look: Look) -> object:
    """Draw a table of `mean`, `low` and `high` as a line and a band; its handle for a legend."""
    axes.fill_between(table.index, table["low"], table["high"], color=look.colour, alpha=0.2, linewidth=0)
    return axes.plot(table.index, table["mean"], **look.line())[0]
