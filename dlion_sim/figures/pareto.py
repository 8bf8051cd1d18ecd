"""Figure of candidates' time and cost to a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dlion_sim.figures.looks import system_looks
from dlion_sim.figures.style import DECADE, drawing, legend_below, make_logarithmic, time_unit

_HEIGHT = 2.6
_MARKERS = "osD^vPX<>hdp"
"""Markers of machines in their order; of more, some share a marker."""
_HOURS_FROM = 2 * 3600.0
_SIZE = 26.0
_ROOM = 0.1
"""The margin around the points, for the ring."""


@dataclass(frozen=True)
class Point:
    """One candidate's time and cost to the target."""

    system: str
    machine: str
    seconds: float
    spent: float
    """Money or bytes."""
    is_measured: bool
    """Whether a simulation reached the target; else it is an estimate."""
    is_on_front: bool
    """Whether it is on the Pareto front."""
    is_best: bool
    """Whether it is recommended."""


def plot_pareto(
    points: Sequence[Point],
    title: str,
    file: Path,
    *,
    deadline: float | None = None,
    budget: float | None = None,
    spent: str = "Cost",
) -> Path:
    """Draw the time (s) and cost, or what else is `spent`, of candidates to `file` (.png, .svg or .pdf).

    Returns `file`. Colours are systems and markers machines or settings; estimates are hollow. A line joins the Pareto
    front, a ring is around the recommended candidate, and the region beyond a `deadline` (s) or a `budget` is shaded.
    Raises InputError if the file cannot be written.
    """
    machines = list(dict.fromkeys(point.machine for point in points))
    marker = {machine: _MARKERS[number % len(_MARKERS)] for number, machine in enumerate(machines)}
    systems = list(dict.fromkeys(point.system for point in points))
    colours = {system: look.colour for system, look in zip(systems, system_looks(systems), strict=True)}
    size, unit = _unit(max((point.seconds for point in points), default=1.0))
    with drawing(file, height=_HEIGHT) as figure:
        axes = figure.subplots()
        axes.set_title(title, wrap=True)
        axes.set_xlabel(f"Time to the target ({unit})")
        axes.set_ylabel(spent)
        front = sorted((point.seconds / size, point.spent) for point in points if point.is_on_front)
        if len(front) > 1:
            axes.plot(*zip(*front, strict=True), color="0.6", linewidth=0.8, zorder=1)
        for point in points:
            colour = colours[point.system]
            face = colour if point.is_measured else "none"
            place = point.seconds / size, point.spent
            axes.scatter(
                *place,
                s=_SIZE,
                marker=marker[point.machine],
                facecolors=face,
                edgecolors=colour,
                linewidths=0.8,
                zorder=2,
            )
            if point.is_best:
                axes.scatter(
                    *place, s=5 * _SIZE, marker="o", facecolors="none", edgecolors="0.2", linewidths=1, zorder=3
                )
        axes.margins(_ROOM)
        _scale(axes, points)
        _shade(axes, None if deadline is None else deadline / size, budget)
        handles: list[Artist] = [Patch(color=colours[system]) for system in systems]
        handles += [_handle(marker[machine]) for machine in machines]
        legend_below(figure, handles, [*systems, *machines], _notes(points))
    return file


def _notes(points: Sequence[Point]) -> list[str]:
    notes = {
        "circled: recommended": any(point.is_best for point in points),
        "hollow: estimated": not all(point.is_measured for point in points),
        "line: Pareto front": sum(point.is_on_front for point in points) > 1,
    }
    return ["; ".join(note for note, is_seen in notes.items() if is_seen)]


def _unit(most: float) -> tuple[float, str]:
    return (3600.0, "h") if most > _HOURS_FROM else time_unit(most)


def _handle(marker: str) -> Line2D:
    return Line2D([], [], linestyle="", marker=marker, color="0.4", markersize=4)


def _scale(axes: Axes, points: Sequence[Point]) -> None:
    for which, values in (("x", [point.seconds for point in points]), ("y", [point.spent for point in points])):
        if values and min(values) > 0 and (span := max(values) / min(values)) > DECADE:
            make_logarithmic(axes, which, span)  # type: ignore[arg-type]
        elif which == "x":
            axes.set_xlim(0, (1 + _ROOM) * max(values, default=1.0) or 1.0)
        else:
            axes.set_ylim(0, (1 + _ROOM) * max(values, default=1.0) or 1.0)


def _shade(axes: Axes, deadline: float | None, budget: float | None) -> None:
    """Shade the visible region out of bounds."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    if deadline is not None and deadline < right:
        axes.axvspan(max(deadline, left), right, color="0.93", zorder=0)
    if budget is not None and budget < top:
        axes.axhspan(max(budget, bottom), top, color="0.93", zorder=0)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
