"""Figure of local batch sizes over time, and of their sum, the global batch size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from dlion_sim.figures.looks import look_in_order
from dlion_sim.figures.panels import worker_groups
from dlion_sim.figures.style import (
    DECADE,
    drawing,
    legend_below,
    make_logarithmic,
    time_label,
    time_unit,
    title,
)
from dlion_sim.results import Run
from dlion_sim.results.numbers import number

_MAX_WORKERS = 6
"""The most workers with a line each; else a line is the mean of a micro-cloud, of like machines, or of all workers."""
_SHORT, _BEYOND = 0.2, 1.5
"""If sizes only change in the first `_SHORT` of the run, `_BEYOND` times that part is shown."""


def plot_batch_sizes(run: Run, file: Path) -> Path:
    """Draw the global and the local batch sizes of `run` to `file` (.png, .svg or .pdf), and return `file`.

    Sizes that change only at the beginning are drawn until shortly after. An axis is logarithmic if its values span
    more than a decade. Raises InputError if the run cannot be read or the file cannot be written.
    """
    iterations = run.iterations()
    end = iterations["virtual_time"].max() if len(iterations) else 1.0
    last = _last_change(iterations)
    shown = _BEYOND * last if 0 < last < _SHORT * end else end
    seconds, unit = time_unit(shown)
    iterations["virtual_time"] /= seconds
    with drawing(file, height=3.1) as figure:
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.8))
        top.set_title(title(run), wrap=True)
        top.set_ylabel("Global batch\nsize (samples)")
        first = iterations[iterations["worker"] == iterations["worker"].min()]
        steps = _changes(first, "global_batch_size")
        top.step(steps["virtual_time"], steps["global_batch_size"], where="post", color="black")
        _scale(top, first["global_batch_size"])
        handles, names, notes = draw_batch_sizes(bottom, iterations, run)
        if shown < end:
            notes.append(f"no change from {number(last / seconds)} {unit} to the end at {number(end / seconds)} {unit}")
        bottom.set_xlabel(time_label(run, unit))
        bottom.set_xlim(0, shown / seconds)
        legend_below(figure, handles, names, notes)
    return file


def draw_batch_sizes(axes: Axes, iterations: pd.DataFrame, run: Run) -> tuple[list[Any], list[str], list[str]]:
    """Draw the local batch sizes over the iterations' virtual time; returns handles, names and notes for a legend."""
    axes.set_ylabel("Local batch\nsize (samples)")
    by_worker = {int(str(worker)): _changes(one, "batch_size") for worker, one in iterations.groupby("worker")}
    lines = worker_groups(run, _MAX_WORKERS).items()
    groups = {name: known for name, own in lines if (known := [each for each in own if each in by_worker])}
    notes = ["line: mean (number of workers); band: minimum to maximum"] * (len(groups) < len(by_worker))
    handles: list[Any] = []
    for place, workers in enumerate(groups.values()):
        look = look_in_order(place)
        table = _over_workers([by_worker[worker] for worker in workers])
        if len(workers) > 1:
            axes.fill_between(
                table.index, table["min"], table["max"], step="post", color=look.colour, alpha=0.2, linewidth=0
            )
        handles += axes.step(table.index, table["mean"], where="post", **{**look.line(), "linewidth": 1})
    _scale(axes, iterations["batch_size"])
    return handles, list(groups), notes


def _over_workers(steps: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """`mean`, `min` and `max` of some workers' batch sizes by time."""
    sizes = [one.groupby("virtual_time")["batch_size"].last() for one in steps]
    together = pd.concat(sizes, axis=1).sort_index().ffill()
    return pd.DataFrame({what: together.agg(what, axis=1) for what in ("mean", "min", "max")})


def _scale(axes: Axes, sizes: pd.Series) -> None:
    """Make the axis linear from 0, or logarithmic for values that span more than a decade."""
    if not sizes.max() > DECADE * sizes.min() > 0:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
        return
    make_logarithmic(axes, "y", sizes.max() / sizes.min())


def _last_change(iterations: pd.DataFrame) -> float:
    """When (s) a worker's batch size, or its global one, last changed; 0 if none did."""
    sizes = iterations.groupby("worker")[["batch_size", "global_batch_size"]]
    changed = (sizes.diff().fillna(0) != 0).any(axis=1)
    return float(iterations.loc[changed, "virtual_time"].max()) if changed.any() else 0.0


def _changes(one: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows of one worker that start another value, and its last, for drawing in steps."""
    needed = one[column].diff().ne(0)
    needed.iloc[-1:] = True
    return one.loc[needed]
