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
from dlion_sim.analysis.groups import Group, metric_label, metric_name, metric_of
from dlion_sim.analysis.statistics import Estimate
from dlion_sim.figures.panels import Panels
from dlion_sim.figures.style import BOUND_HATCH, WIDE, WIDTH, drawing, legend_below, of_seeds, span, time_unit
from dlion_sim.results.numbers import number, of_metric

_BARS_IN_A_COLUMN, _ENVIRONMENTS_IN_A_COLUMN = 24, 9
"""More need the width of both columns."""
_BARS_WITH_LEVEL_NUMBERS, _BARS_WITH_NUMBERS = 8, 12
_LETTERS_ACROSS = 44
_ROOM_FOR_NUMBERS = 0.2
_TILTED_LETTER, _UPRIGHT_LETTER = 0.02, 0.05
"""Additional height for each letter of the longest name, in inches."""
_LONGEST_TILTED = 36
"""Letters of a name; longer ones are upright, in several lines."""
_LONGEST_LINE = 26
_MAX_WHISKERS = 2.5
"""The most that whiskers exceed the highest bar, as a factor; longer ones are cut off."""


def plot_accuracy_at(groups: Sequence[Group], file: Path, time: float) -> Path:
    """Draw the groups' accuracy, or another metric, at a virtual time (s) to `file`, and return `file`.

    Bars are means over seeds, whiskers their range. Raises InputError if a file cannot be read or written.
    """
    seconds, unit = time_unit(time)
    bars, metric = _Bars(groups), metric_of(groups)
    values = ([metric.scale * at(mean_metric(run), time) for run in group.runs] for group in groups)
    known = [[value for value in own if not math.isnan(value)] for own in values]
    with drawing(file, height=2.4 + bars.height_of_names, width=bars.width) as figure:
        axes = figure.subplots()
        axes.set_title(bars.heading, wrap=True)
        bars.draw(axes, [_range(values) for values in known], "ended earlier")
        axes.set_ylabel(f"{metric_label(groups)}\nafter {number(time / seconds, 6)} {unit}")
        bars.name_environments(axes)
        notes = of_seeds("whiskers: minimum to maximum", [len(values) for values in known], groups)
        if any(0 < len(values) < len(group.runs) for values, group in zip(known, groups, strict=True)):
            notes.append("without seeds that ended earlier")
        legend_below(figure, *bars.legend(), [*notes, *bars.notes])
    return file


def plot_time_to_accuracy(groups: Sequence[Group], file: Path, target: float) -> Path:
    """Draw the virtual time to the `target` of accuracy, or another metric, and the speed-up over Baseline, to `file`.

    Bars are means over seeds, whiskers their range, and of a speed-up its interval; see `comparison`. A crossed bar is
    a bound, if not all seeds reached the target. Without Baseline there are no speed-ups.

    Returns `file`. Raises InputError if a file cannot be read or written.
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
    notes = of_seeds("whiskers: minimum to maximum", table["seeds"].tolist())
    pairs = table["pairs"][table["speedup_low"].notna()].tolist()
    if pairs:
        notes.append("whiskers of speed-ups: 95 % interval" + (f" over {span(pairs)} pairs" if min(pairs) else ""))
    if any(each.bound for each in (*times, *speedups)):
        notes.append("crossed: a bound, as not all seeds reached it or evaluations are far apart")
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
    """The mean with the range as its interval."""
    if not values:
        return Estimate()
    return Estimate(float(np.mean(values)), *((min(values), max(values)) if len(values) > 1 else ()))


class _Bars:
    """The position of each group's bar: by environment, and within that by system."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups
        self._panels = Panels(groups)
        self.heading = self._panels.heading
        self.notes = self._panels.notes
        self.has_legend = len(self._panels.panels) > 1 and len(self._panels.lines) > 1
        many = len(groups) > _BARS_IN_A_COLUMN or len(self._panels.panels) > _ENVIRONMENTS_IN_A_COLUMN
        self.width = WIDE if many else WIDTH

    def draw(self, axes: Axes, estimates: Sequence[Estimate], missing: str) -> None:
        """Draw a bar for each group, hatched if it is a bound; or the text `missing`."""
        highest = _MAX_WHISKERS * max((each.value for each in estimates if each.value > 0), default=1.0)
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
        """Label the horizontal axis: environments or, of a single one, its systems."""
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
        """Handles and names of the systems, unless the horizontal axis names them."""
        if not self.has_legend:
            return [], []
        return [Patch(**look.bar()) for look in self._panels.looks], list(self._panels.names)

    @property
    def height_of_names(self) -> float:
        """Additional height (inches) for names that are too long to be horizontal."""
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
        """A name in lines."""
        return textwrap.wrap(name, _LONGEST_LINE) if self._are_upright else [name]

    @property
    def _environments(self) -> Sequence[str]:
        """The labels of the horizontal axis."""
        return self._panels.names if len(self._panels.panels) == 1 else self._panels.panels

    @property
    def _breadth(self) -> float:
        return 0.8 / len(self._panels.lines) if self.has_legend else 0.7

    def _place(self, group: Group) -> float:
        panel, line = self._panels.panel(group), self._panels.line(group)
        if self.has_legend:
            return panel + (line - (len(self._panels.lines) - 1) / 2) * self._breadth
        return float(panel or line)
