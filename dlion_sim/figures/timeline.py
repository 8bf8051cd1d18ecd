"""What each worker did when, as a Gantt chart: computing, waiting, and how much it sent."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from dlion_sim.analysis.timeline import sending, spans
from dlion_sim.errors import InputError
from dlion_sim.figures.style import PALETTE, drawing, legend_below, time_label, title, worker_names
from dlion_sim.results import Run

COMPUTE, WAIT, SEND = PALETTE[0], PALETTE[4], PALETTE[2]
_ITERATIONS = 10
_ROW_INCHES, _MOST_INCHES = 0.26, 8.0


def plot_timeline(run: Run, file: Path, begin: float | None = None, end: float | None = None) -> Path:
    """Draw what the workers of `run` did from `begin` to `end` (virtual s) to `file`, and return `file`.

    By default from the first gradient until every worker has done 10 iterations. A strip below each worker's bar says
    at what mean rate it sent in each interval of the links' table. Raises InputError where the run cannot be read, has
    done nothing in that time, or the file cannot be written.
    """
    all_spans = spans(run)
    begin, end = _window(all_spans, begin, end)
    shown = all_spans[(all_spans["end"] > begin) & (all_spans["begin"] < end)]
    if shown.empty:
        raise InputError(f"no worker did anything from {begin:g} s to {end:g} s", file=run.folder)
    names = worker_names(run)
    workers = sorted(all_spans["worker"].unique())
    with drawing(file, height=min(0.9 + _ROW_INCHES * len(workers), _MOST_INCHES)) as figure:
        axes = figure.subplots()
        axes.set_title(title(run), wrap=True)
        for what, colour in (("compute", COMPUTE), ("wait", WAIT)):
            _draw_spans(axes, shown[shown["what"] == what], colour)
        legend = {"computing": Patch(color=COMPUTE), "waiting": Patch(color=WAIT)}
        highest = _draw_sending(axes, sending(run), begin, end)
        if highest:
            legend[f"sending (full colour: {highest / 1e6:.3g} Mbps)"] = Patch(color=SEND)
        axes.set_yticks(workers, [names.get(worker, str(worker)) for worker in workers])
        axes.set_ylim(max(workers) + 0.6, min(workers) - 0.6)
        axes.set_xlim(begin, end)
        axes.set_xlabel(time_label(run, "s"))
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        legend_below(figure, list(legend.values()), list(legend))
    return file


def _window(all_spans: pd.DataFrame, begin: float | None, end: float | None) -> tuple[float, float]:
    if begin is None:
        begin = float(all_spans["begin"].min()) if len(all_spans) else 0.0
    if end is None:
        later = all_spans[all_spans["begin"] >= begin]
        ends = later[later["what"] == "compute"].groupby("worker")["end"]
        end = float(ends.apply(lambda own: own.iloc[:_ITERATIONS].iloc[-1]).max()) if len(later) else begin + 1
    return begin, end


def _draw_spans(axes: Axes, of_kind: pd.DataFrame, colour: str) -> None:
    for worker, own in of_kind.groupby("worker"):
        bars = list(zip(own["begin"], own["end"] - own["begin"], strict=True))
        axes.broken_barh(bars, (int(str(worker)) - 0.4, 0.55), facecolor=colour, edgecolor="white", linewidth=0.25)


def _draw_sending(axes: Axes, sent: pd.DataFrame, begin: float, end: float) -> float:
    """Draw a strip a worker, the stronger the more it sent; the highest rate (bps) drawn."""
    shown = sent[(sent["end"] > begin) & (sent["begin"] < end)]
    highest = float(shown["rate"].max()) if len(shown) else 0.0
    for worker, start, stop, rate in shown[["worker", "begin", "end", "rate"]].to_numpy().tolist():
        strength = rate / highest if highest else 0.0
        axes.broken_barh([(start, stop - start)], (worker + 0.2, 0.18), facecolor=SEND, alpha=strength, linewidth=0)
    return highest
