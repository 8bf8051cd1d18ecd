"""Figure of messages' completion times: their distribution, and by parts if packets may be lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from dlion_sim.analysis.completion import LARGE, SMALL, by_part, completions, percentiles
from dlion_sim.analysis.groups import Group
from dlion_sim.errors import InputError
from dlion_sim.figures.looks import Look
from dlion_sim.figures.panels import Panels
from dlion_sim.figures.style import WIDE, WIDTH, drawing, legend_below, make_logarithmic, write_empty
from dlion_sim.results.numbers import number

_PANEL_HEIGHT = 1.6
_PANELS_IN_A_COLUMN = 3
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
_LEFT_OUT, _WIDE_APART = 0.01, 4.0
"""The share of a line's shortest messages that may be left out, and the ratio of the longest to the shortest one from
which on the axis is logarithmic."""
_MOST_POINTS = 1000
"""Of a line, with both ends."""
_PARTS_HEIGHT = 1.3
"""Of a row of panels, in inches."""
_CLASSES: Mapping[str, dict[str, Any]] = {
    LARGE: {"marker": "o", "linestyle": "-"},
    SMALL: {"marker": "o", "linestyle": (0, (3, 1.5)), "markerfacecolor": "white"},
}
_SIZE: dict[str, Any] = {"markersize": 3, "markeredgewidth": 0.7, "linewidth": 1}
_STAGES = ("push", "pull", "reduce", "gather", "mix")
_MAX_NAMED = 8
"""Variables with names; more have numbers."""


def plot_completion_times(groups: Sequence[Group], file: Path) -> Path:
    """Draw the completion times of groups' data messages to `file` (.png, .svg or .pdf), and return `file`.

    Times are from a message's first byte on; see `analysis.completion`. If all groups are of one environment, further
    panels show messages' parts by stage, variable and class of packets: the 99th percentile of their completion times,
    and the share of missing bytes. Raises InputError if no run has a record of its messages, or a file cannot be read
    or written.
    """
    panels = Panels(groups)
    times = [np.concatenate([completions(run)["seconds"].to_numpy() for run in group.runs]) for group in groups]
    if not any(map(len, times)):
        allowed = "one with record_transfers, in which data was sent"
        raise InputError("has no record of messages", file=groups[0].runs[0].folder, allowed=allowed)
    unit = _unit(max(float(each.max()) for each in times if len(each)))
    summaries = [_summary(each, unit) for each in times]
    is_one = len(panels.panels) == 1
    parts = [by_part(group.runs) for group in groups] if is_one else []
    columns = len(_stages_of(parts)) or 1 if is_one else 1 + (len(panels.panels) > _PANELS_IN_A_COLUMN)
    rows = -(-len(panels.panels) // columns)
    heights = [*[_PANEL_HEIGHT] * rows, *(_PARTS_HEIGHT for _ in _rows_of(parts))]
    with drawing(file, height=0.8 + sum(heights), width=WIDTH if columns == 1 else WIDE) as figure:
        grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
        places = [grid[0, :]] if is_one else [grid[divmod(number, columns)] for number in range(len(panels.panels))]
        all_axes: list[Axes] = []
        for place, name in zip(places, panels.panels, strict=True):
            axes = figure.add_subplot(place, sharex=all_axes[0] if all_axes else None)
            axes.set_title(", ".join(filter(None, [panels.heading, name])), wrap=True)
            axes.set_ylabel("Messages (%)")
            axes.set_xlabel(f"Completion time ({unit[1]})")
            all_axes.append(axes)
        for group, seconds in zip(groups, times, strict=True):
            _draw(all_axes[panels.panel(group)], seconds / unit[0], panels.look(group))
        notes = _limit(all_axes[0], [each / unit[0] for each in times if len(each)], unit[1])
        for axes in all_axes:
            axes.set_ylim(0, 102)
            if not axes.lines:
                write_empty(axes, "no record of messages")
        legend = {name: Line2D([], [], **look.line()) for name, look in zip(panels.names, panels.looks, strict=True)}
        notes += [
            ": ".join(filter(None, [_name(group, panels), words]))
            for group, words in zip(groups, summaries, strict=True)
        ]
        if _rows_of(parts):
            named = (run.manifest.get("variables", []) for group in groups for run in group.runs)
            variables: list[str] = next(filter(None, named), [])
            legend |= _draw_parts(figure, grid, parts, [panels.look(group) for group in groups], unit, variables)
        shown = {name: handle for name, handle in legend.items() if name}
        legend_below(figure, [*shown.values()], [*shown], [*notes, *panels.notes])
    return file


def _name(group: Group, panels: Panels) -> str:
    """A group's name in a note."""
    return ", ".join(filter(None, [panels.panels[panels.panel(group)], panels.names[panels.line(group)]]))


def _unit(longest: float) -> tuple[float, str]:
    """The unit for times up to so many seconds: (seconds, name)."""
    return next((unit for unit in _UNITS if longest >= unit[0]), _UNITS[-1])


def _summary(seconds: npt.NDArray[np.float64], unit: tuple[float, str]) -> str:
    """Their mean and percentiles as text."""
    if not len(seconds):
        return "no record of messages"
    mean, p50, p99 = (number(each / unit[0]) for each in percentiles(seconds).values())
    return f"mean {mean}, p50 {p50}, p99 {p99} {unit[1]} (of {len(seconds):,})"


def _draw(axes: Axes, times: npt.NDArray[np.float64], look: Look) -> None:
    """Draw the distribution function, with dots at the median and at 99 %."""
    if not len(times):
        return
    times = np.sort(times)
    at = np.unique(np.linspace(0, len(times) - 1, min(len(times), _MOST_POINTS)).astype(int))
    axes.plot(times[at], 100 * (at + 1) / len(times), **{**look.line(), "drawstyle": "steps-post"})
    marks = percentiles(times)
    axes.plot([marks["p50"], marks["p99"]], [50, 99], "o", color=look.colour, markersize=2.5)


def _limit(axes: Axes, times: Sequence[npt.NDArray[np.float64]], unit: str) -> list[str]:
    """Limit the axis to the times without a group's shortest 1 %; it is logarithmic for a wide range."""
    low, high = min(float(np.quantile(each, _LEFT_OUT)) for each in times), max(float(each.max()) for each in times)
    if not high > _WIDE_APART * low > 0:
        axes.set_xlim(0, 1.05 * high or 1.0)
        return []
    make_logarithmic(axes, "x", high / low)
    axes.set_xlim(low / 1.15, 1.15 * high)
    if min(float(each.min()) for each in times) >= low:
        return []
    return [f"not shown: up to 1 % of a line's messages, below {number(low)} {unit}"]


def _rows_of(tables: Sequence[pd.DataFrame]) -> list[str]:
    """The rows of panels for tables of `analysis.completion.by_part`: columns with values."""
    return [column for column in ("p99", "lost") if any(table[column].notna().any() for table in tables)]


def _stages_of(tables: Sequence[pd.DataFrame]) -> list[str]:
    """The stages of parts in the order of an iteration, one for each column of panels."""
    stages = {stage for table in tables for stage in table["stage"]}
    return sorted(stages, key=lambda stage: (_STAGES.index(stage) if stage in _STAGES else len(_STAGES), stage))


def _draw_parts(
    figure: Figure,
    grid: GridSpec,
    tables: Sequence[pd.DataFrame],
    looks: Sequence[Look],
    unit: tuple[float, str],
    variables: Sequence[str],
) -> dict[str, Line2D]:
    """Draw tables of `analysis.completion.by_part` below the first row of a grid; returns the legend's entries.

    Times are in `unit` (seconds, name); `variables` are names, empty if unknown.
    """
    labels = {"p99": f"99 % complete\nwithin ({unit[1]})", "lost": "Missing (%)"}
    scales = {"p99": 1 / unit[0], "lost": 100.0}
    rows = _rows_of(tables)
    for place, stage in enumerate(_stages_of(tables)):
        for row, column in enumerate(rows):
            axes = figure.add_subplot(grid[1 + row, place])
            for table, look in zip(tables, looks, strict=True):
                for packets, style in _CLASSES.items():
                    own = table[(table["stage"] == stage) & (table["packets"] == packets)]
                    axes.plot(own["variable"], scales[column] * own[column], color=look.colour, **_SIZE, **style)
            axes.set_ylim(bottom=0)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            if row == 0 and stage:
                axes.set_title(stage, size=7.5)
            if place == 0:
                axes.set_ylabel(labels[column])
            if row < len(rows) - 1:
                axes.tick_params(labelbottom=False)
                continue
            axes.set_xlabel("Variable, from the front")
            if 0 < len(variables) <= _MAX_NAMED:
                axes.set_xticks(range(len(variables)), variables, rotation=30, ha="right", rotation_mode="anchor")
    return {f"{packets} entries": Line2D([], [], color="0.25", **_SIZE, **style) for packets, style in _CLASSES.items()}
