"""What became of messages' parts, by variable: when they were there and what was missing, large entries and small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from dlion_sim.analysis.completion import LARGE, SMALL
from dlion_sim.figures.looks import Look

HEIGHT = 1.3
"""Of a row of panels, in inches."""
_CLASSES: Mapping[str, dict[str, Any]] = {
    LARGE: {"marker": "o", "linestyle": "-"},
    SMALL: {"marker": "o", "linestyle": (0, (3, 1.5)), "markerfacecolor": "white"},
}
_SIZE: dict[str, Any] = {"markersize": 3, "markeredgewidth": 0.7, "linewidth": 1}
_STAGES = ("push", "pull", "reduce", "gather", "mix")
_MOST_NAMED = 8
"""Variables; more have their numbers."""


def rows_of(tables: Sequence[pd.DataFrame]) -> list[str]:
    """Which rows of panels there are for tables of `analysis.completion.by_part`: what any of them knows."""
    return [column for column in ("p99", "lost") if any(table[column].notna().any() for table in tables)]


def stages_of(tables: Sequence[pd.DataFrame]) -> list[str]:
    """Of which stages there are parts, in the order of an iteration: each has a column of panels."""
    stages = {stage for table in tables for stage in table["stage"]}
    return sorted(stages, key=lambda stage: (_STAGES.index(stage) if stage in _STAGES else len(_STAGES), stage))


def draw_parts(
    figure: Figure,
    grid: GridSpec,
    tables: Sequence[pd.DataFrame],
    looks: Sequence[Look],
    unit: tuple[float, str],
    variables: Sequence[str],
) -> dict[str, Line2D]:
    """Draw tables of `analysis.completion.by_part` below the first row of a grid; how each class of packets looks.

    Times are in `unit` (seconds, name); `variables` are their names, as far as they are known.
    """
    labels = {"p99": f"99 % there\nwithin ({unit[1]})", "lost": "Missing (%)"}
    scales = {"p99": 1 / unit[0], "lost": 100.0}
    rows = rows_of(tables)
    for place, stage in enumerate(stages_of(tables)):
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
            if 0 < len(variables) <= _MOST_NAMED:
                axes.set_xticks(range(len(variables)), variables, rotation=30, ha="right", rotation_mode="anchor")
    return {f"{packets} entries": Line2D([], [], color="0.25", **_SIZE, **style) for packets, style in _CLASSES.items()}
