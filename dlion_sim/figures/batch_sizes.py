"""The workers' local batch sizes over virtual time, and the global batch size that they add up to."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from dlion_sim.figures.style import BLUE, drawing, line_look, time_label, time_unit, title, worker_names
from dlion_sim.results import Run

WORKERS_TOLD_APART = 12
"""Of more workers than these, all have one colour."""


def plot_batch_sizes(run: Run, file: Path) -> Path:
    """Draw the global and the local batch sizes of `run` to `file` (.png, .svg or .pdf), and return `file`.

    Raises InputError where the run cannot be read or the file cannot be written.
    """
    iterations = run.iterations()
    end = iterations["virtual_time"].max() if len(iterations) else 1.0
    seconds, unit = time_unit(end)
    iterations["virtual_time"] /= seconds
    with drawing(file, height=3.0) as figure:
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.8))
        top.set_title(title(run), wrap=True)
        top.set_ylabel("Global batch\nsize (samples)")
        first = iterations[iterations["worker"] == iterations["worker"].min()]
        steps = _changes(first, "global_batch_size")
        top.step(steps["virtual_time"], steps["global_batch_size"], where="post", color="black")
        top.set_ylim(bottom=0)
        top.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
        draw_batch_sizes(bottom, iterations, run)
        bottom.set_xlabel(time_label(run, unit))
        bottom.set_xlim(0, end / seconds)
    return file


def draw_batch_sizes(axes: Axes, iterations: pd.DataFrame, run: Run) -> None:
    """Draw each worker's local batch size over the iterations' virtual time, in whatever unit that is."""
    axes.set_ylabel("Local batch\nsize (samples)")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    names = worker_names(run)
    by_worker = iterations.groupby("worker")
    told_apart = len(by_worker) <= WORKERS_TOLD_APART
    for place, (worker, one) in enumerate(by_worker):
        look = {**line_look(place), "linewidth": 1} if told_apart else {"color": BLUE, "alpha": 0.35, "linewidth": 0.5}
        steps = _changes(one, "batch_size")
        name = names.get(int(str(worker)), str(worker))
        axes.step(steps["virtual_time"], steps["batch_size"], where="post", label=name, **look)
    axes.set_ylim(bottom=0)
    if told_apart and len(by_worker):
        axes.legend(
            title="worker",
            loc="center left",
            bbox_to_anchor=(1, 0.5),
            ncols=1 if len(by_worker) <= 6 else 2,
        )


def _changes(one: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows of one worker that start another value, and its last: all that a drawing in steps needs."""
    needed = one[column].diff().ne(0)
    needed.iloc[-1:] = True
    return one.loc[needed]
