"""Heat map of a quantity over two axes of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from dlion_sim.analysis import comparison
from dlion_sim.analysis.groups import Group, is_named, metric_name, metric_of, note, varying
from dlion_sim.errors import InputError
from dlion_sim.figures.panels import Panels
from dlion_sim.figures.style import WIDTH, drawing, legend_below, time_unit
from dlion_sim.metric import ACCURACY
from dlion_sim.results import traffic_of
from dlion_sim.results.labels import last_words
from dlion_sim.results.numbers import byte_unit, number, of_metric

Quantity = Literal["accuracy", "time", "speedup", "bytes"]
_NOTE_MARK = "!"
"""Marks cells with a note: runs without an exchange, or diverged ones."""


def plot_heatmap(
    groups: Sequence[Group], file: Path, quantity: Quantity, target: float, x: str | None = None, y: str | None = None
) -> Path:
    """Draw a quantity by two labels of the groups, mean over seeds, to `file` (.png, .svg or .pdf); returns `file`.

    Bounds of times and speed-ups, see `comparison`, are hatched.

    Args:
        groups: Of runs that differ in two labels, such as a sweep's axes.
        file: The picture.
        quantity: Final accuracy (or other metric), time to the `target`, speed-up over Baseline, or bytes sent (over
            the WAN, if a run has one).
        target: Of the metric; an accuracy is a fraction.
        x: The label of the horizontal axis, or the end of its name, e.g. "bandwidth"; by default the first other one.
        y: The label of the vertical axis; by default the system, or else the last one.

    Raises:
        InputError: There are no such labels, groups differ in others too, or a file cannot be read or written.
    """
    across, down = _axes(groups, x, y)
    columns, rows = (list(dict.fromkeys(group.labels.get(key, "") for group in groups)) for key in (across, down))
    values = np.full((len(rows), len(columns)), np.nan)
    texts: dict[tuple[int, ...], str] = {}
    cells, label, written = _quantity(groups, quantity, target)
    bounded = []
    for group, (value, bound) in zip(groups, cells, strict=True):
        place = rows.index(group.labels.get(down, "")), columns.index(group.labels.get(across, ""))
        values[place] = value
        text = f"{bound} {written(value)}".lstrip() if np.isfinite(value) else "-"
        texts[place] = text + _NOTE_MARK * bool(note([group]))
        if bound:
            bounded.append(place)
    notes = ["hatched: a bound, as not all seeds reached it or evaluations are far apart"] * bool(bounded)
    notes += [f"{_NOTE_MARK} {noted}" for noted in dict.fromkeys(note([group]) for group in groups) if noted]

    with drawing(file, height=1.1 + 0.28 * len(rows), width=max(WIDTH, min(7.16, 1.4 + 0.42 * len(columns)))) as figure:
        axes = figure.subplots()
        axes.set_title(Panels(groups).heading, wrap=True)
        image = axes.imshow(values, cmap="cividis", aspect="auto")
        figure.colorbar(image, label=label)
        axes.set_xticks(range(len(columns)), columns)
        axes.set_yticks(range(len(rows)), rows)
        axes.set_xlabel(last_words(across))
        axes.set_ylabel(last_words(down))
        axes.grid(visible=False)
        axes.tick_params(length=0)
        shade = Normalize(np.nanmin(values), np.nanmax(values)) if np.isfinite(values).any() else Normalize(0, 1)
        for (row, place), value in np.ndenumerate(values):
            dark = np.isfinite(value) and shade(value) < 0.55
            colour = "white" if dark else "black"
            if (row, place) in bounded:
                corner = (place - 0.5, row - 0.5)
                axes.add_patch(Rectangle(corner, 1, 1, fill=False, hatch="//", edgecolor=colour, alpha=0.25, lw=0))
            axes.text(place, row, texts.get((row, place), "-"), ha="center", va="center", size=6, color=colour)
        legend_below(figure, [], [], notes)
    return file


def _quantity(
    groups: Sequence[Group], quantity: Quantity, target: float
) -> tuple[list[tuple[float, str]], str, Callable[[float], str]]:
    """Each group's value, with ">" or "<" if it is a bound; the label with its unit; and the number format."""
    table, name, metric = comparison(groups, target), metric_name(groups), metric_of(groups)
    reaching = f"{of_metric(target, metric)} {name}"
    exact = [""] * len(groups)
    match quantity:
        case "accuracy":
            finals = zip(metric.scale * table["final"], exact, strict=True)
            written = "{:.1f}" if metric == ACCURACY else "{:.4g}"
            return list(finals), f"Final {name}{metric.axis}", written.format
        case "time":
            longest = table["time"].max()
            seconds, unit = time_unit(longest if longest == longest else 0.0)
            times = zip(table["time"] / seconds, table["time_bound"], strict=True)
            return list(times), f"Time to {reaching} ({unit})", number
        case "speedup":
            speedups = zip(table["speedup"], table["speedup_bound"], strict=True)
            return list(speedups), f"Speed-up over Baseline\nto {reaching} (times)", "{:.2f}".format
        case "bytes":
            traffic = traffic_of(run for group in groups for run in group.runs)
            size, unit = byte_unit(table[traffic.total].max())
            return list(zip(table[traffic.total] / size, exact, strict=True)), f"{traffic.title} ({unit})", number


def _axes(groups: Sequence[Group], x: str | None, y: str | None) -> tuple[str, str]:
    keys = varying(groups)
    if not keys:
        raise InputError("the runs differ in nothing but their seeds", allowed="runs of a sweep")
    others = [key for key in reversed(keys) if x is None or not is_named(key, x)]
    down = _named(y, keys, "y") if y else next(iter(others), "scenario")
    across = _named(x, keys, "x") if x else next((key for key in keys if key != down), "scenario")
    places: dict[tuple[str, str], Mapping[str, str]] = {}
    for group in groups:
        place = group.labels.get(across, ""), group.labels.get(down, "")
        if place in places:
            also = ", ".join(key for key in keys if key not in (across, down))
            raise InputError(
                f"several runs have {place[0]}, {place[1]}, since the runs also differ in {also}",
                allowed="two of these as `x` and `y`, and runs that are equal in the rest",
            )
        places[place] = group.labels
    return across, down


def _named(name: str, keys: Sequence[str], argument: str) -> str:
    found = [key for key in keys if is_named(key, name)]
    if len(found) != 1:
        raise InputError(f"`{argument}` {name}: the runs don't differ in that", allowed=", ".join(keys))
    return found[0]
