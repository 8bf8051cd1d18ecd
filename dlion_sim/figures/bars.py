"""Grouped bars by environment and system: accuracy at a time, time to an accuracy and speed-up over Baseline."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from dlion_sim.analysis import comparison, time_to_target
from dlion_sim.analysis.curves import at, mean_metric
from dlion_sim.analysis.groups import Group, metric_name, metric_of
from dlion_sim.analysis.statistics import Estimate
from dlion_sim.figures.panels import Panels
from dlion_sim.figures.style import BOUND_HATCH, WIDE, WIDTH, drawing, legend_below, of_seeds, span, time_unit
from dlion_sim.results.numbers import number, of_metric

_BARS_IN_A_COLUMN, _ENVIRONMENTS_IN_A_COLUMN = 24, 9
"""More need the width of both."""
_BARS_WITH_LEVEL_NUMBERS, _BARS_WITH_NUMBERS = 8, 12
_LETTERS_ACROSS = 44
_ROOM_FOR_NUMBERS = 0.2
_TILTED_LETTER, _UPRIGHT_LETTER = 0.02, 0.05
"""How much higher a figure is for each of the longest name, in inches."""
_LONGEST_TILTED = 36
"""Letters of a name; longer ones stand upright, in lines."""
_LONGEST_LINE = 26
_MOST_OF_WHISKERS = 2.5
"""Of the highest bar: longer ones are cut off there."""


def plot_accuracy_at(groups: Sequence[Group], file: Path, time: float) -> Path:
    """Draw the accuracy, or another metric, that the groups had at a virtual time (s) to `file`, and return `file`.

    Bars are means over seeds, whiskers their range. Raises InputError where a run cannot be read or the file cannot be
    written.
    """
    seconds, unit = time_unit(time)
    bars, metric = _Bars(groups), metric_of(groups)
    found = [[metric.scale * at(mean_metric(run), time) for run in group.runs] for group in groups]
    known = [[value for value in values if not math.isnan(value)] for values in found]
    with drawing(file, height=2.4 + bars.height_of_names, width=bars.width) as figure:
        axes = figure.subplots()
        axes.set_title(bars.heading, wrap=True)
        bars.draw(axes, [_range(values) for values in known], "not run so long")
        axes.set_ylabel(f"{metric_name(groups).capitalize()}{metric.axis}\nafter {number(time / seconds, 6)} {unit}")
        bars.name_environments(axes)
        notes = of_seeds("whiskers: least to greatest", [len(values) for values in known], groups)
        if any(0 < len(values) < len(group.runs) for values, group in zip(known, groups, strict=True)):
            notes.append("without seeds that ended before")
        legend_below(figure, *bars.legend(), [*notes, *bars.notes])
    return file


def plot_time_to_accuracy(groups: Sequence[Group], file: Path, target: float) -> Path:
    """Draw the virtual time to the `target` of accuracy, or another metric, and the speed-up over Baseline, to `file`.

    Bars are means over seeds, whiskers their range, and of a speed-up its interval; see `comparison`. Where not all
    seeds got there, a crossed bar is the bound that is known. There are no speed-ups without a Baseline.

    Returns `file`. Raises InputError where a run cannot be read or the file cannot be written.
    """
    table = comparison(groups, target)
    seconds, unit = time_unit(table["time"].max() if table["time"].notna().any() else 0.0)
    bars = _Bars(groups)
    times = [
        Estimate(time / seconds, bound=bound)
        if bound
        else _range([time_to_target(run, target) / seconds for run in group.samples.values()])
        for group, (time, bound) in zip(groups, table[["time", "time_bound"]].to_numpy().tolist(), strict=True)
    ]
    columns = ["speedup", "speedup_low", "speedup_high", "speedup_bound"]
    speedups = [Estimate(*row) for row in table[columns].to_numpy().tolist()]
    with_speedups = table["speedup"].notna().any()
    notes = of_seeds("whiskers: least to greatest", table["seeds"].tolist())
    pairs = table["pairs"][table["speedup_low"].notna()].tolist()
    if pairs:
        notes.append("whiskers of speed-ups: 95 % interval" + (f" over {span(pairs)} pairs" if min(pairs) else ""))
    if any(each.bound for each in (*times, *speedups)):
        notes.append("crossed: a bound, as not all seeds got there or evaluations are far apart")
    with drawing(file, height=(3.8 if with_speedups else 2.4) + bars.height_of_names, width=bars.width) as figure:
        top, *below = figure.subplots(2 if with_speedups else 1, 1, sharex=True, squeeze=False)[:, 0]
        top.set_title(bars.heading, wrap=True)
        bars.draw(top, times, "not run")
        top.set_ylabel(f"Time to {of_metric(target, metric_of(groups))}\n{metric_name(groups)} ({unit})")
        for axes in below:
            top.tick_params(axis="x", length=0)
            bars.draw(axes, speedups, "not known")
            axes.axhline(1, color="0.45", linewidth=0.6, zorder=0.9)
            axes.set_ylabel("Speed-up over\nBaseline (times)")
        bars.name_environments([top, *below][-1])
        legend_below(figure, *bars.legend(), [*notes, *bars.notes])
    return file


def _range(values: Sequence[float]) -> Estimate:
    """The mean, from the least to the greatest."""
    if not values:
        return Estimate()
    return Estimate(float(np.mean(values)), *((min(values), max(values)) if len(values) > 1 else ()))


class _Bars:
    """Where the bar of each group stands: by environment, and within that by system."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups
        self._panels = Panels.of(groups)
        self.heading = self._panels.heading
        self.notes = self._panels.notes
        self.has_legend = len(self._panels.panels) > 1 and len(self._panels.lines) > 1
        many = len(groups) > _BARS_IN_A_COLUMN or len(self._panels.panels) > _ENVIRONMENTS_IN_A_COLUMN
        self.width = WIDE if many else WIDTH

    def draw(self, axes: Axes, estimates: Sequence[Estimate], missing: str) -> None:
        """A bar a group, hatched where it is a bound; or the words for what is missing."""
        highest = _MOST_OF_WHISKERS * max((each.value for each in estimates if each.value > 0), default=1.0)
        for group, each in zip(self._groups, estimates, strict=True):
            place, look = self._place(group), self._panels.look(group).bar()
            if math.isnan(each.value):
                axes.text(place, 0, f" {missing}", rotation=90, ha="center", va="bottom", color="0.45", size=5.5)
                continue
            if each.bound:
                look |= {"hatch": BOUND_HATCH}
            has_whisker = not math.isnan(each.low)
            top = min(each.high, highest) if has_whisker else each.value
            axes.bar(place, each.value, self._breadth, **look)
            if has_whisker:
                axes.vlines(place, each.low, top, color="0.5", linewidth=0.7)
                if top < each.high:
                    axes.plot(place, top, "^", color="0.5", markersize=2.5)
            if len(self._groups) <= _BARS_WITH_NUMBERS:
                axes.annotate(
                    f"{each.bound} {number(each.value)}".lstrip(),
                    (place, top),
                    xytext=(0, 3 if top < each.high else 1),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    rotation=90 * (len(self._groups) > _BARS_WITH_LEVEL_NUMBERS),
                    size=5.5,
                    color="0.25",
                )
        axes.grid(visible=False, axis="x")
        axes.margins(y=_ROOM_FOR_NUMBERS)

    def name_environments(self, axes: Axes) -> None:
        """Label the horizontal axis: environments or, where there is one only, its systems."""
        names = self._environments
        axes.set_xticks(range(len(names)), ["\n".join(self._lines(name)) for name in names])
        axes.set_xlim(-0.6, len(names) - 0.4)
        if self._are_upright:
            axes.tick_params(axis="x", rotation=90, labelsize=5.5)
        elif self.height_of_names:
            for label in axes.get_xticklabels():
                label.set(rotation=30, ha="right", rotation_mode="anchor")
        axes.tick_params(axis="x", length=0)

    def legend(self) -> tuple[list[object], list[str]]:
        """Handles and names of the systems, unless these stand below their bars."""
        if not self.has_legend:
            return [], []
        return [Patch(**look.bar()) for look in self._panels.looks], list(self._panels.names)

    @property
    def height_of_names(self) -> float:
        """How much higher (inches) than others a figure is, since its names are too long to stand level."""
        if self._are_upright:
            return _UPRIGHT_LETTER * max(len(line) for name in self._environments for line in self._lines(name))
        return 0.0 if self._are_level else _TILTED_LETTER * self._longest

    @property
    def _longest(self) -> int:
        return max(map(len, self._environments))

    @property
    def _are_level(self) -> bool:
        return self._longest <= _LETTERS_ACROSS * self.width / WIDTH / len(self._environments)

    @property
    def _are_upright(self) -> bool:
        return self._longest > _LONGEST_TILTED and not self._are_level

    def _lines(self, name: str) -> list[str]:
        """A name as it is written."""
        return textwrap.wrap(name, _LONGEST_LINE) if self._are_upright else [name]

    @property
    def _environments(self) -> Sequence[str]:
        """What stands below the horizontal axis."""
        return self._panels.names if len(self._panels.panels) == 1 else self._panels.panels

    @property
    def _breadth(self) -> float:
        return 0.8 / len(self._panels.lines) if self.has_legend else 0.7

    def _place(self, group: Group) -> float:
        panel, line = self._panels.panel(group), self._panels.line(group)
        if self.has_legend:
            return panel + (line - (len(self._panels.lines) - 1) / 2) * self._breadth
        return float(panel or line)
