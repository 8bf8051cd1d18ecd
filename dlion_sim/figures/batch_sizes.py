"""The workers' local batch sizes over virtual time, and the global batch size that they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from dlion_sim.figures.looks import look_in_order
from dlion_sim.figures.style import (
    DECADE,
    by_cloud,
    drawing,
    legend_below,
    make_logarithmic,
    time_label,
    time_unit,
    title,
    worker_names,
)
from dlion_sim.results import Run
from dlion_sim.results.numbers import number

_WORKERS_TOLD_APART = 6
"""Of more than these, a line is the mean of a micro-cloud's, or of all where those are too many as well."""
_CLOUDS_TOLD_APART = 8
_SHORT, _BEYOND = 0.2, 1.5
"""Of the run: where sizes change in less of it only, so many times as much is shown."""


def plot_batch_sizes(run: Run, file: Path) -> Path:
    """Draw the global and the local batch sizes of `run` to `file` (.png, .svg or .pdf), and return `file`.

    Sizes that change at the beginning only are drawn until soon after. An axis is logarithmic where its values span
    more than a decade. Raises InputError where the run cannot be read or the file cannot be written.
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
    """Draw the local batch sizes over the iterations' virtual time, in whatever unit that is.

    Returns the handles and names of the lines for a legend, and what to note above it.
    """
    axes.set_ylabel("Local batch\nsize (samples)")
    by_worker = {int(str(worker)): _changes(one, "batch_size") for worker, one in iterations.groupby("worker")}
    groups, notes = _groups(list(by_worker), worker_names(run))
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


def _groups(workers: Sequence[int], names: dict[int, str]) -> tuple[dict[str, list[int]], list[str]]:
    """Who is drawn as one line, by what it is called; and what to note on that."""
    if len(workers) <= _WORKERS_TOLD_APART:
        return {names.get(worker, str(worker)): [worker] for worker in workers}, []
    clouds = by_cloud(workers, names)
    if len(clouds) > _CLOUDS_TOLD_APART:
        return {f"all {len(workers)} workers": list(workers)}, ["line: mean; band: least to greatest"]
    return clouds, ["line: mean of a micro-cloud's (workers); band: least to greatest"]


def _over_workers(steps: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """`mean`, `min` and `max` of some workers' batch sizes by time, from when the first of them has one."""
    sizes = [one.groupby("virtual_time")["batch_size"].last() for one in steps]
    together = pd.concat(sizes, axis=1).sort_index().ffill()
    return pd.DataFrame({what: together.agg(what, axis=1) for what in ("mean", "min", "max")})


def _scale(axes: Axes, sizes: pd.Series) -> None:
    """A linear axis from 0 on, or a logarithmic one for what spans more than a decade."""
    if not sizes.max() > DECADE * sizes.min() > 0:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
        return
    make_logarithmic(axes, "y", sizes.max() / sizes.min())


def _last_change(iterations: pd.DataFrame) -> float:
    """When (s) a worker's batch size, or the global one as it knows it, last changed; 0 where none did."""
    sizes = iterations.groupby("worker")[["batch_size", "global_batch_size"]]
    changed = (sizes.diff().fillna(0) != 0).any(axis=1)
    return float(iterations.loc[changed, "virtual_time"].max()) if changed.any() else 0.0


def _changes(one: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows of one worker that start another value, and its last: all that a drawing in steps needs."""
    needed = one[column].diff().ne(0)
    needed.iloc[-1:] = True
    return one.loc[needed]
