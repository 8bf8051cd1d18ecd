"""Grouped bars by environment and system: accuracy at a time, time to an accuracy and speed-up over Baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from dlion_sim.analysis import comparison, time_to_accuracy
from dlion_sim.analysis.curves import at, mean_accuracy
from dlion_sim.analysis.groups import Group, accuracy_of
from dlion_sim.figures.panels import Panels
from dlion_sim.figures.style import WIDE, WIDTH, bar_look, drawing, legend_below, time_unit
from dlion_sim.results import Run

_BARS_IN_A_COLUMN = 24
"""More need the width of both."""
_BARS_WITH_NUMBERS = 12
_LETTERS_ACROSS = 56


def plot_accuracy_at(groups: Sequence[Group], file: Path, time: float) -> Path:
    """Draw the accuracy that the groups had at a virtual time (s) to `file`, and return `file`.

    Bars are means over seeds, whiskers their range. Raises InputError where a run cannot be read or the file cannot be
    written.
    """
    seconds, unit = time_unit(time)
    bars = _Bars(groups)
    with drawing(file, height=2.4, width=bars.width) as figure:
        axes = figure.subplots()
        axes.set_title(bars.heading, wrap=True)
        bars.draw(axes, lambda run: 100 * at(mean_accuracy(run), time), "not run so long")
        axes.set_ylabel(f"{accuracy_of(groups).capitalize()} (%)\nafter {time / seconds:g} {unit}")
        bars.name_environments(axes)
        if bars.has_legend:
            legend_below(figure, *bars.legend())
    return file


def plot_time_to_accuracy(groups: Sequence[Group], file: Path, target: float) -> Path:
    """Draw the virtual time until the accuracy was `target`, and the speed-up over Baseline, to `file`.

    Bars are means over seeds that reached it, whiskers their range; of a speed-up there is that of the means alone, and
    none without a Baseline. Returns `file`. Raises InputError where a run cannot be read or the file cannot be written.
    """
    table = comparison(groups, target)
    seconds, unit = time_unit(table["time"].max() if table["time"].notna().any() else 0.0)
    bars = _Bars(groups)
    speedups = dict(zip((group.runs[0].folder for group in groups), table["speedup"], strict=True))
    with_speedups = table["speedup"].notna().any()
    with drawing(file, height=3.8 if with_speedups else 2.4, width=bars.width) as figure:
        top, *below = figure.subplots(2 if with_speedups else 1, 1, sharex=True, squeeze=False)[:, 0]
        top.set_title(bars.heading, wrap=True)
        bars.draw(top, lambda run: time_to_accuracy(run, target) / seconds, "not reached")
        top.set_ylabel(f"Time to {target:.0%}\n{accuracy_of(groups)} ({unit})")
        for axes in below:
            top.tick_params(axis="x", length=0)
            bars.draw(axes, lambda run: speedups.get(run.folder, math.nan), "not reached by both")
            axes.axhline(1, color="0.45", linewidth=0.6)
            axes.set_ylabel("Speed-up over\nBaseline (times)")
        bars.name_environments([top, *below][-1])
        if bars.has_legend:
            legend_below(figure, *bars.legend())
    return file


class _Bars:
    """Where the bar of each group stands: by environment, and within that by system."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups
        self._panels = Panels.of(groups)
        self.heading = self._panels.heading
        self.has_legend = len(self._panels.panels) > 1 and len(self._panels.lines) > 1
        self.width = WIDE if len(groups) > _BARS_IN_A_COLUMN else WIDTH

    def draw(self, axes: Axes, quantity: Callable[[Run], float], missing: str) -> None:
        """A bar a group: the mean of what is known of its runs, or else the words for what is missing."""
        for group in self._groups:
            values = [value for run in group.runs if not np.isnan(value := quantity(run))]
            place, look = self._place(group), bar_look(self._panels.line(group))
            if not values:
                axes.text(place, 0, f" {missing}", rotation=90, ha="center", va="bottom", color="0.45", size=5.5)
                continue
            mean = float(np.mean(values))
            whisker = [[mean - min(values)], [max(values) - mean]] if len(values) > 1 else None
            axes.bar(place, mean, self._breadth, yerr=whisker, error_kw={"elinewidth": 0.7}, **look)
            if len(self._groups) <= _BARS_WITH_NUMBERS:
                axes.annotate(
                    f"{mean:.3g}",
                    (place, max(values)),
                    xytext=(0, 1),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    size=5.5,
                    color="0.25",
                )
        axes.grid(visible=False, axis="x")

    def name_environments(self, axes: Axes) -> None:
        """Label the horizontal axis: environments or, where there is one only, its systems."""
        names = self._panels.lines if len(self._panels.panels) == 1 else self._panels.panels
        most = _LETTERS_ACROSS * self.width / WIDTH / len(names)
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.6, len(names) - 0.4)
        if max(map(len, names)) > most:
            for label in axes.get_xticklabels():
                label.set(rotation=30, ha="right", rotation_mode="anchor")
        axes.tick_params(axis="x", length=0)

    def legend(self) -> tuple[list[object], list[str]]:
        """Handles and names of the systems."""
        lines = self._panels.lines
        return [Patch(**bar_look(number)) for number in range(len(lines))], list(lines)

    @property
    def _breadth(self) -> float:
        return 0.8 / len(self._panels.lines) if self.has_legend else 0.7

    def _place(self, group: Group) -> float:
        panel, line = self._panels.panel(group), self._panels.line(group)
        if self.has_legend:
            return panel + (line - (len(self._panels.lines) - 1) / 2) * self._breadth
        return float(panel or line)
