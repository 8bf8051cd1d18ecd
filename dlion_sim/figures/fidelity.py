"""Figure of a simulated run and a real one of the same scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from dlion_sim.analysis.curves import mean_metric
from dlion_sim.figures.style import PALETTE, drawing, limit_scores
from dlion_sim.results import Run

_LOOKS: tuple[dict[str, Any], ...] = ({"color": PALETTE[0]}, {"color": PALETTE[1], "linestyle": "--"})


def plot_fidelity(simulated: Run, real: Run, file: Path) -> Path:
    """Draw both runs' mean metric over time, and the distributions of iteration times, to `file`; returns `file`.

    Raises InputError if a file cannot be read or written.
    """
    metric = simulated.metric
    with drawing(file, height=3.6) as figure:
        scores, durations = figure.subplots(2, 1)
        for run, name, look in zip((simulated, real), ("simulated", _way(real)), _LOOKS, strict=True):
            mean = mean_metric(run) * metric.scale
            scores.plot(mean.index, mean, label=name, **look)
            _draw_durations(durations, run, name, look)
        scores.set_title(f"{simulated.manifest['scenario']} · {simulated.system}", wrap=True)
        scores.set_xlabel("Time (s)")
        scores.set_ylabel(f"{simulated.evaluated_on.capitalize()} {metric.name}{metric.axis}")
        limit_scores(scores, metric)
        scores.legend(loc="lower right" if metric.higher_is_better else "upper right")
        durations.set_xlabel("Time of an iteration (s)")
        durations.set_ylabel("Iterations up to\nthat time (%)")
        durations.set_xscale("log")
        durations.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        durations.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        durations.xaxis.set_minor_formatter(NullFormatter())
    return file


def _way(run: Run) -> str:
    return {"emulate": "emulated", "live": "live"}.get(str(run.manifest.get("way")), "real")


def _draw_durations(axes: Axes, run: Run, name: str, look: dict[str, Any]) -> None:
    """The distribution of the iteration times of all workers."""
    lasted = run.iterations().groupby("worker")["virtual_time"].diff().dropna().sort_values()
    if len(lasted):
        axes.step(lasted, np.linspace(100 / len(lasted), 100, len(lasted)), where="post", label=name, **look)
