"""Figure of links' queues: the longest ones over time, and dropped and marked packets of all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from dlion_sim.errors import InputError
from dlion_sim.figures.style import PALETTE, drawing, legend_below, time_label, time_unit, title
from dlion_sim.results import Run
from dlion_sim.results.numbers import byte_unit, number

_MOST_PORTS = 5
_ROW_HEIGHT = 0.75
_MOST, _MEAN, _DROPPED, _MARKED = "0.75", PALETTE[0], PALETTE[1], PALETTE[5]


def plot_queues(run: Run, file: Path) -> Path:
    """Draw the queues of links of `run` to `file` (.png, .svg or .pdf), and return `file`.

    A row for each of the five links with the longest queues: mean and maximum of queued bytes by interval. Below:
    dropped and, stacked on these, marked packets of all links. Raises InputError if the run has no queues, or a file
    cannot be read or written.
    """
    queues = run.queues()
    if queues.empty:
        raise InputError("has no queues", file=run.folder, allowed="a simulation with network: {model: packets}")
    ends = np.unique(queues["virtual_time"])
    seconds, unit = time_unit(float(ends[-1]))
    longest = queues.groupby("port", observed=True)["most_queued"].max()
    ports = longest.sort_values(ascending=False, kind="stable").index[:_MOST_PORTS]
    size, size_unit = byte_unit(float(longest.max()))
    counts = queues.groupby("virtual_time")[["dropped", "marked"]].sum()
    with drawing(file, height=1.9 + _ROW_HEIGHT * len(ports)) as figure:
        figure.suptitle(title(run), x=0.02, ha="left", size=8.5)
        *rows, below = figure.subplots(len(ports) + 1, 1, sharex=True)
        for axes, port in zip(rows, ports, strict=True):
            own = queues[queues["port"] == port].groupby("virtual_time")[["mean_queued", "most_queued"]].max()
            over_time = own.reindex(ends, fill_value=0.0) / size
            most = _fill(axes, ends / seconds, over_time["most_queued"], _MOST)
            mean = _fill(axes, ends / seconds, over_time["mean_queued"], _MEAN)
            axes.set_title(str(port), size=7.5)
            axes.yaxis.set_major_locator(MaxNLocator(nbins=3))
        rows[len(rows) // 2].set_ylabel(f"Queued ({size_unit})")
        dropped = _fill(below, ends / seconds, counts["dropped"], _DROPPED)
        marked = _fill(below, ends / seconds, counts["marked"], _MARKED, above=counts["dropped"])
        below.set_title(f"all {len(longest)} links", size=7.5)
        below.set_ylabel("Packets")
        below.set_xlabel(time_label(run, unit))
        below.set_xlim(0, ends[-1] / seconds)
        names = [f"{what} ({number(int(counts[what].sum()))} in all)" for what in ("dropped", "marked")]
        legend_below(figure, [mean, most, dropped, marked], ["mean", "maximum", *names])
    return file


def _fill(
    axes: Axes, ends: npt.NDArray[np.float64], values: pd.Series, colour: str, above: pd.Series | float = 0.0
) -> object:
    """Draw a value for each interval, the first of which begins at 0; stacked `above` others."""
    edges = np.concatenate([[0.0], ends])
    return axes.stairs(values + above, edges, baseline=above, color=colour, fill=True, linewidth=0.4)
