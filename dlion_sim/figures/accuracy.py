"""Figure of one run's accuracy, or another metric, and local batch sizes over time."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from dlion_sim.analysis.outages import common_outages
from dlion_sim.figures.batch_sizes import draw_batch_sizes
from dlion_sim.figures.looks import system_look
from dlion_sim.figures.style import (
    drawing,
    legend_below,
    limit_scores,
    shade,
    time_label,
    time_unit,
    title,
    write_empty,
)
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.results import Run
from dlion_sim.results.json_document import MOST

_WORKERS_DRAWN = 12
"""More workers are drawn as their range only."""


def plot_accuracy(run: Run, file: Path) -> Path:
    """Draw the metric of `run` over time to `file` (.png, .svg or .pdf), and return `file`.

    Shows the mean over the workers, their range and, of up to 12 workers, each; below it the local batch sizes, if they
    vary. Raises InputError if the run cannot be read or the file cannot be written.
    """
    evaluations, iterations = run.evaluations(), run.iterations()
    end = pd.concat([evaluations["virtual_time"], iterations["virtual_time"]]).max()
    seconds, unit = time_unit(end)
    for frame in (evaluations, iterations):
        frame["virtual_time"] /= seconds
    with_batch_sizes = iterations["batch_size"].nunique() > 1
    outages = common_outages([run])

    with drawing(file, height=3.3 if with_batch_sizes else 2.4) as figure:
        if with_batch_sizes:
            top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
            handles, names, notes = draw_batch_sizes(bottom, iterations, run)
        else:
            top = bottom = figure.subplots()
            handles, names, notes = [], [], []
        down = shade(figure.axes, outages, end, seconds)
        legend_below(figure, [*handles, *down.values()], [*names, *down], notes)
        _draw_metric(top, evaluations, run.metric, system_look(run.system).colour)
        top.set_ylabel(f"{run.evaluated_on.capitalize()} {run.metric.name}{run.metric.axis}")
        top.set_title(title(run), wrap=True)
        bottom.set_xlabel(time_label(run, unit))
        bottom.set_xlim(0, end / seconds if end > 0 else 1)
    return file


def _draw_metric(axes: Axes, evaluations: pd.DataFrame, metric: Metric, colour: str) -> None:
    limit_scores(axes, metric)
    shown = evaluations.assign(value=evaluations[metric.key] * metric.scale)
    shown = shown[shown["value"].abs() <= MOST]  # neither unknown nor of a run that diverged
    if shown.empty:
        write_empty(axes, "no evaluation")
        return
    over_workers = shown.groupby("virtual_time")["value"].agg(["mean", "min", "max"])
    by_worker = shown.groupby("worker")
    if 1 < len(by_worker) <= _WORKERS_DRAWN:
        for _, one in by_worker:
            axes.plot(one["virtual_time"], one["value"], color=colour, alpha=0.35, linewidth=0.5)
    if len(by_worker) > 1:
        axes.fill_between(
            over_workers.index,
            over_workers["min"],
            over_workers["max"],
            color=colour,
            alpha=0.2,
            linewidth=0,
            label=f"range of {len(by_worker)} workers",
        )
    axes.plot(over_workers.index, over_workers["mean"], color=colour, label="mean")
    time, last = over_workers.index[-1], over_workers["mean"].iloc[-1]
    axes.vlines(time, over_workers["min"].iloc[-1], over_workers["max"].iloc[-1], color=colour, linewidth=0.8)
    axes.plot(time, last, "o", color=colour, markersize=3.5, clip_on=False)
    axes.annotate(
        f"{last:.1f} %" if metric == ACCURACY else f"{last:.4g}",
        (time, last),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        color=colour,
        weight="bold",
    )
    if len(by_worker) > 1:
        axes.legend(loc="lower right" if metric.higher_is_better else "upper right", reverse=True)
