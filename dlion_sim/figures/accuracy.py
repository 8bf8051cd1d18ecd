"""Test accuracy over virtual time, and the local batch sizes that led to it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from dlion_sim.figures.style import BLUE, PALETTE, drawing
from dlion_sim.results import Run

_MINUTES_FROM = 20 * 60.0
_WORKERS_TOLD_APART = 12


def plot_accuracy(run: Run, file: Path) -> Path:
    """Draw how the test accuracy of `run` grew over virtual time to `file` (.png, .svg or .pdf), and return `file`.

    Shows the mean over the workers, their range and, of up to 12 workers, each; below it the local batch sizes, where
    they aren't all one. Raises InputError where the run cannot be read or the file cannot be written.
    """
    evaluations, iterations = run.evaluations(), run.iterations()
    end = pd.concat([evaluations["virtual_time"], iterations["virtual_time"]]).max()
    seconds, unit = (60.0, "min") if end > _MINUTES_FROM else (1.0, "s")
    for frame in (evaluations, iterations):
        frame["virtual_time"] /= seconds
    with_batch_sizes = iterations["batch_size"].nunique() > 1

    with drawing(file, height=3.3 if with_batch_sizes else 2.4) as figure:
        if with_batch_sizes:
            top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
            _draw_batch_sizes(bottom, iterations)
        else:
            top = bottom = figure.subplots()
        _draw_accuracy(top, evaluations)
        top.set_title(_title(run), wrap=True)
        bottom.set_xlabel(f"Virtual time ({unit})")
        bottom.set_xlim(0, end / seconds if end > 0 else 1)
    return file


def _title(run: Run) -> str:
    names = run.summary or run.manifest
    return " · ".join(names[key] for key in ("scenario", "system") if key in names) or run.folder.name


def _draw_accuracy(axes: Axes, evaluations: pd.DataFrame) -> None:
    axes.set_ylabel("Test accuracy (%)")
    axes.set_ylim(0, 100)
    percent = evaluations.assign(accuracy=evaluations["accuracy"] * 100).dropna(subset="accuracy")
    if percent.empty:
        axes.text(0.5, 0.5, "no evaluation", transform=axes.transAxes, ha="center", va="center", color="0.45")
        return
    over_workers = percent.groupby("virtual_time")["accuracy"].agg(["mean", "min", "max"])
    by_worker = percent.groupby("worker")
    if 1 < len(by_worker) <= _WORKERS_TOLD_APART:
        for _, one in by_worker:
            axes.plot(one["virtual_time"], one["accuracy"], color=BLUE, alpha=0.35, linewidth=0.5)
    if len(by_worker) > 1:
        axes.fill_between(
            over_workers.index,
            over_workers["min"],
            over_workers["max"],
            color=BLUE,
            alpha=0.2,
            linewidth=0,
            label=f"range of {len(by_worker)} workers",
        )
    axes.plot(over_workers.index, over_workers["mean"], color=BLUE, label="mean")
    time, accuracy = over_workers.index[-1], over_workers["mean"].iloc[-1]
    axes.vlines(time, over_workers["min"].iloc[-1], over_workers["max"].iloc[-1], color=BLUE, linewidth=0.8)
    axes.plot(time, accuracy, "o", color=BLUE, markersize=3.5, clip_on=False)
    axes.annotate(
        f"{accuracy:.1f} %",
        (time, accuracy),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        color=BLUE,
        weight="bold",
    )
    if len(by_worker) > 1:
        axes.legend(loc="lower right", reverse=True)


def _draw_batch_sizes(axes: Axes, iterations: pd.DataFrame) -> None:
    axes.set_ylabel("Local batch\nsize (samples)")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    by_worker = iterations.groupby("worker")
    told_apart = len(by_worker) <= _WORKERS_TOLD_APART
    for place, (worker, one) in enumerate(by_worker):
        cycle, colour = divmod(place, len(PALETTE))
        look = (
            {"color": PALETTE[colour], "linestyle": ("-", "--")[cycle], "linewidth": 1}
            if told_apart
            else {"color": BLUE, "alpha": 0.35, "linewidth": 0.5}
        )
        steps = _changes(one)
        axes.step(steps["virtual_time"], steps["batch_size"], where="post", label=str(worker), **look)
    axes.set_ylim(bottom=0)
    if told_apart:
        axes.legend(
            title="worker",
            loc="center left",
            bbox_to_anchor=(1, 0.5),
            ncols=1 if len(by_worker) <= 6 else 2,
        )


def _changes(one: pd.DataFrame) -> pd.DataFrame:
    """The rows of one worker that start another batch size, and its last: all that a drawing in steps needs."""
    needed = one["batch_size"].diff().ne(0)
    needed.iloc[-1] = True
    return one.loc[needed]
