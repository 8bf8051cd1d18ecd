"""Timeline of workers as a Gantt chart: profiling, computing, waiting and sending."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from dlion_sim.analysis.outages import process_outages
from dlion_sim.analysis.timeline import sending, spans, transfers
from dlion_sim.errors import InputError
from dlion_sim.figures.style import PALETTE, WIDE, WIDTH, drawing, legend_below, shade_rows, time_label, title
from dlion_sim.results import Run, participants

COMPUTE, WAIT, SEND, PROFILE = PALETTE[0], PALETTE[4], PALETTE[2], PALETTE[3]
_LOOKS = {"profile": (PROFILE, "profiling"), "compute": (COMPUTE, "computing"), "wait": (WAIT, "waiting")}
_ITERATIONS = 10
_IN_ONE_COLUMN = 3
"""The most workers in one column; more are drawn across both."""
_BAR = 0.14
"""Inches."""
_LANE, _LEAST_STRIP, _GREATEST_STRIP = 0.025, 0.06, 0.2
"""Inches of a transfer, and the range for all of a worker; if these need more, their number is drawn."""
_FILLED = 0.75
"""The drawn share of a transfer's height."""
_GAP = 0.06
_MOST_INCHES = 9.0
_THIN, _EDGED = 1 / 1200, 1 / 100
"""Shares of the width: thinner spans are drawn that wide if there is room; wider ones have edges."""

Bar = tuple[float, float]
"""Begin and length (s)."""


def plot_timeline(run: Run, file: Path, begin: float | None = None, end: float | None = None) -> Path:
    """Draw the timeline of `run` from `begin` to `end` (virtual s) to `file`, and return `file`.

    By default it begins after all profiling and ends when every worker has done 10 more iterations. A strip below each
    worker's bar shows the messages that it sent, overlapping ones one above the other; if too many overlap, their
    number; of runs without a record of messages, the mean rate in each interval of the links' table. A row is shaded
    while its worker was down. Raises InputError if the run cannot be read, the window is empty, or the file cannot be
    written.
    """
    all_spans = spans(run.metrics())
    begin, end = _window(all_spans, begin, end)
    shown = _within(all_spans, begin, end)
    if shown.empty:
        raise InputError(f"no worker did anything from {begin:g} s to {end:g} s", file=run.folder)
    recorded = transfers(run)
    sent = _within(recorded if len(recorded) else sending(run), begin, end)
    names = dict(enumerate(participants(run.manifest)))
    senders: set[int] = set(sent["sender"]) if len(recorded) else set()
    outages = process_outages(run)
    rows = sorted({*all_spans["worker"]} | senders | {*outages})
    lanes = int(sent["lane"].max()) + 1 if len(recorded) and len(sent) else 1
    strip = min(max(_LANE * lanes, _LEAST_STRIP), _GREATEST_STRIP)
    row = _BAR + strip + _GAP
    width = WIDTH if len(rows) <= _IN_ONE_COLUMN else WIDE
    with drawing(file, height=min(0.9 + row * len(rows), _MOST_INCHES), width=width) as figure:
        axes = figure.subplots()
        axes.set_title(title(run), wrap=True)
        legend = {}
        places = {number: place for place, number in enumerate(rows)}
        for what, (colour, name) in _LOOKS.items():
            of_kind = shown[shown["what"] == what]
            if what != "profile" or len(of_kind):
                legend[name] = Patch(color=colour)
            for worker, own in of_kind.groupby("worker"):
                place = places[int(str(worker))], _BAR / row
                # Thin spans of computing are drawn above waiting.
                _draw_spans(axes, own, place, colour, end - begin, above=what != "wait")
        row_outages = [(places[number], each) for number, own in outages.items() for each in own]
        legend |= shade_rows(axes, row_outages, (_BAR + strip) / row, begin, end)
        top, height = _BAR / row, strip / row
        if len(senders) and _LANE * lanes > _GREATEST_STRIP:
            most = _draw_counts(axes, sent, places, top, height, end - begin)
            legend[f"sending (full height: {most} messages at once)"] = Patch(color=SEND)
        elif len(senders):
            _draw_transfers(axes, sent, places, top, height, end - begin)
            legend["sending, a line for each message"] = Patch(color=SEND)
        elif not len(recorded) and (highest := _draw_sending(axes, sent, places, top, height)):
            legend[f"sending (full colour: {highest / 1e6:.3g} Mbps)"] = Patch(color=SEND)
        axes.set_yticks([place + _BAR / row / 2 for place in places.values()], [names.get(n, str(n)) for n in rows])
        axes.set_ylim(len(rows), -_GAP / row)
        axes.set_xlim(begin, end)
        axes.set_xlabel(time_label(run, "s"))
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        legend_below(figure, list(legend.values()), list(legend))
    return file


def _window(all_spans: pd.DataFrame, begin: float | None, end: float | None) -> tuple[float, float]:
    if begin is None:
        computing = all_spans.loc[all_spans["what"] == "compute", "begin"].min()
        # Workers that join later may profile then.
        profiles = all_spans[(all_spans["what"] == "profile") & ~(all_spans["begin"] > computing)]
        begin = float((profiles["end"].max() if len(profiles) else all_spans["begin"].min()) if len(all_spans) else 0)
    if end is None:
        later = all_spans[all_spans["begin"] >= begin]
        end = max((_tenth_end(own) for _, own in later.groupby("worker")), default=begin + 1)
    return begin, end


def _tenth_end(own: pd.DataFrame) -> float:
    """When a worker had computed 10 gradients, or the end of its last span."""
    ends = own[own["what"] == "compute"]["end"]
    return float(ends.iloc[_ITERATIONS - 1] if len(ends) >= _ITERATIONS else own["end"].max())


def _within(rows: pd.DataFrame, begin: float, end: float) -> pd.DataFrame:
    return rows[(rows["end"] > begin) & (rows["begin"] < end)]


def _draw_spans(axes: Axes, own: pd.DataFrame, place: Bar, colour: str, width: float, *, above: bool = False) -> None:
    """Draw bars at a place (top, height) of a figure that is `width` seconds wide."""
    bars = list(_visible(own["begin"].to_numpy(), own["end"].to_numpy(), width))
    edges = [0.25 if length > _EDGED * width else 0.0 for _, length in bars]
    axes.broken_barh(bars, place, facecolor=colour, edgecolor="white", linewidth=edges, snap=False, zorder=1 + above)


def _visible(begins: np.ndarray, ends: np.ndarray, width: float) -> Iterator[Bar]:
    """The bars; thin ones are widened to be visible, unless they would then touch the next one."""
    least = _THIN * width
    nexts = np.append(begins[1:], np.inf)
    for begin, end, following in zip(begins.tolist(), ends.tolist(), nexts.tolist(), strict=True):
        yield begin, max(end - begin, least if following - begin > 3 * least else 0.0)


def _draw_transfers(
    axes: Axes, sent: pd.DataFrame, places: dict[int, int], top: float, height: float, width: float
) -> None:
    """Draw a line for each message, in its lane of the strip below its sender's bar."""
    lane_height = height / (int(sent["lane"].max()) + 1)
    for _, own in sent.groupby(["sender", "lane"]):
        sender, lane = int(own["sender"].iloc[0]), int(own["lane"].iloc[0])
        place = places[sender] + top + lane * lane_height, _FILLED * lane_height
        _draw_spans(axes, own, place, SEND, width)


def _draw_counts(
    axes: Axes, sent: pd.DataFrame, places: dict[int, int], top: float, height: float, width: float
) -> int:
    """Draw the number of messages in transit as the height of each worker's strip; returns the maximum."""
    steps = {}
    for sender, own in sent.groupby("sender"):
        ends = np.maximum(own["end"], own["begin"] + _THIN * width)
        changes = pd.concat([pd.Series(1, own["begin"]), pd.Series(-1, ends)]).groupby(level=0).sum().cumsum()
        steps[places[int(str(sender))] + top + height] = changes
    most = max(int(changes.max()) for changes in steps.values())
    for bottom, changes in steps.items():
        above = bottom - height * changes / most
        axes.fill_between(changes.index, bottom, above, step="post", color=SEND, linewidth=0)
    return most


def _draw_sending(axes: Axes, sent: pd.DataFrame, places: dict[int, int], top: float, height: float) -> float:
    """Draw the sending rate as the opacity of each worker's strip; returns the maximum (bps)."""
    highest = float(sent["rate"].max()) if len(sent) else 0.0
    for worker, start, stop, rate in sent[["worker", "begin", "end", "rate"]].to_numpy().tolist():
        if worker in places:
            strength = rate / highest if highest else 0.0
            place = places[worker] + top, height
            axes.broken_barh([(start, stop - start)], place, facecolor=SEND, alpha=strength, linewidth=0)
    return highest
