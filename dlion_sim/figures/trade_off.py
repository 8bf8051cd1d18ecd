"""Trade-off of the final metric and bytes sent, with the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dlion_sim.analysis.comparison import comparison
from dlion_sim.analysis.groups import Group, metric_label, metric_of
from dlion_sim.figures.looks import Look
from dlion_sim.figures.panels import Grid, Panels, rows_of
from dlion_sim.figures.style import DECADE, WIDE, WIDTH, drawing, legend_below, make_logarithmic, of_seeds
from dlion_sim.metric import Metric
from dlion_sim.results import is_representative, traffic_of
from dlion_sim.results.numbers import byte_unit, in_bytes

_PANEL_HEIGHT = 1.8
_ROOM = 0.08
"""The margin around the markers."""


@dataclass(frozen=True)
class Place:
    """A group's result."""

    sent: float
    """Bytes, the mean over runs."""
    value: float
    """The metric in its unit of display."""
    half: float = math.nan
    """Half of its interval, NaN without one."""


def plot_trade_off(groups: Sequence[Group], file: Path) -> Path:
    """Draw the groups' final accuracy, or another metric, against the bytes sent to `file`, and return `file`.

    Bytes are over the WAN if a run has one. A marker is a group's mean over seeds, its whiskers the metric's 95 %
    t-interval; a panel is an environment. A line joins the Pareto front of a panel, without runs that had no exchange
    or diverged. Raises InputError if a file cannot be read or written.
    """
    panels, metric = Panels(groups), metric_of(groups)
    traffic = traffic_of(run for group in groups for run in group.runs)
    table = comparison(groups, target=math.nan)
    places = {
        number: Place(
            row[traffic.total], metric.scale * row["final"], metric.scale * (row["final_high"] - row["final"])
        )
        for number, row in enumerate(table.to_dict("records"))
        if not math.isnan(row[traffic.total] + row["final"])
    }
    sent = [place.sent for place in places.values() if place.sent > 0]
    size, unit = byte_unit(max(sent, default=1.0))
    notes = dict.fromkeys(of_seeds("whiskers: 95 % interval", [int(seeds) for seeds in table["seeds"]], groups))
    if missing := len(groups) - len(places):
        notes[f"not shown: {missing} of {len(groups)} groups without a completed run"] = None
    columns = min(2, len(panels.panels))
    height = 0.8 + _PANEL_HEIGHT * rows_of(panels, columns)
    with drawing(file, height=height, width=WIDTH if columns == 1 else WIDE) as figure:
        grid = Grid(figure, panels, columns)
        for number, place in places.items():
            group = groups[number]
            _draw(grid.axes[panels.panel(group)], place, size, panels.look(group))
        for panel, axes in enumerate(grid.axes):
            known = [n for n in places if panels.panel(groups[n]) == panel and is_representative(str(table["note"][n]))]
            on_front = front([places[n] for n in known], metric)
            if len(on_front) > 1:
                notes["line: Pareto front"] = None
                _join(axes, on_front, size)
        first = grid.axes[0]  # whose scale is that of all
        first.margins(_ROOM)
        is_wide = bool(sent) and (span := max(sent) / min(sent)) > DECADE
        if is_wide:
            make_logarithmic(first, "x", span, lambda value: in_bytes(value * size))
        else:
            first.set_xlim(left=0)
        of_bytes = "" if is_wide else f" ({unit})"
        grid.label(f"{traffic.title}{of_bytes}", metric_label(groups))
        lines = sorted({panels.line(groups[number]) for number in places}) if len(panels.lines) > 1 else []
        legend_below(
            figure,
            [Line2D([], [], **panels.looks[line].point()) for line in lines],
            [panels.names[line] for line in lines],
            [*notes, *panels.notes],
        )
    return file


def front(places: Sequence[Place], metric: Metric) -> list[Place]:
    """The Pareto front: no other place has as few bytes and as good a value; by bytes."""
    sign = -1 if metric.higher_is_better else 1
    best: list[Place] = []
    for place in sorted(places, key=lambda place: (place.sent, sign * place.value)):
        if not best or not metric.reaches(best[-1].value, place.value):
            best.append(place)
    return best


def _draw(axes: Axes, place: Place, size: float, look: Look) -> None:
    half = None if math.isnan(place.half) else place.half
    axes.errorbar(place.sent / size, place.value, yerr=half, elinewidth=0.7, capsize=1.5, **look.point())


def _join(axes: Axes, places: Sequence[Place], size: float) -> None:
    sent, values = [place.sent / size for place in places], [place.value for place in places]
    axes.step(sent, values, where="post", color="0.6", linewidth=0.8, zorder=1)
