"""What each link carried over virtual time: bytes, and the N of Max-N."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dlion_sim.errors import InputError
from dlion_sim.figures.style import BLUE, drawing, legend_below, line_look, time_label, time_unit, title, worker_names
from dlion_sim.results import Run

_ROWS = 8
"""Of senders; the links of more are drawn all in one."""


def plot_links(run: Run, file: Path) -> Path:
    """Draw N (%) and the rate (Mbps) of each directed link of `run` by interval to `file`, and return `file`.

    A row a sender, a line a receiver. Raises InputError where the run cannot be read, has sent nothing, or the file
    cannot be written.
    """
    links = _with_rates(run)
    if links.empty:
        raise InputError("has sent nothing", file=run.folder)
    seconds, unit = time_unit(links["virtual_time"].max())
    links["virtual_time"] /= seconds
    names = {**{number: f"server {number}" for number in links["receiver"].unique()}, **worker_names(run)}
    senders = [int(sender) for sender in sorted(links["sender"].unique())]
    receivers = [int(receiver) for receiver in sorted(links["receiver"].unique())]
    told_apart = len(senders) <= _ROWS
    rows = {f"from\n{names.get(sender, sender)}": [sender] for sender in senders} if told_apart else {"all": senders}
    columns = {"n_percent": "N of Max-N (%)", "rate": "Sent (Mbps)"}
    if links["n_percent"].isna().all():
        del columns["n_percent"]

    with drawing(file, height=0.9 + (0.75 if told_apart else 1.6) * len(rows)) as figure:
        figure.suptitle(title(run), x=0.02, ha="left", size=8.5)
        panels = figure.subplots(len(rows), len(columns), sharex=True, sharey="col", squeeze=False)
        handles: dict[int, Line2D] = {}
        for row, (name, own) in zip(panels, rows.items(), strict=True):
            for axes, column in zip(row, columns, strict=True):
                handles |= _draw(axes, links[links["sender"].isin(own)].dropna(subset=column), column, receivers)
            row[0].set_ylabel(name)
        for axes, label in zip(panels[0], columns.values(), strict=True):
            axes.set_title(label, size=7.5)
            axes.set_ylim(bottom=0)
        for axes in panels[-1]:
            axes.set_xlabel(time_label(run, unit))
            axes.set_xlim(left=0)
        if told_apart:
            known = sorted(handles)
            legend_below(figure, [handles[number] for number in known], [f"to {names[number]}" for number in known])
    return file


def _with_rates(run: Run) -> pd.DataFrame:
    """The links' rows with `rate` in Mbps, the mean over the interval that the row ends."""
    links = run.links()
    ends = sorted({*links["virtual_time"], *run.evaluations()["virtual_time"]})
    begins = links["virtual_time"].map(dict(zip(ends, [0.0, *ends], strict=False))).astype(float)
    return links.assign(rate=8e-6 * links["bytes"] / (links["virtual_time"] - begins))


def _draw(axes: Axes, links: pd.DataFrame, column: str, receivers: Sequence[int]) -> dict[int, Line2D]:
    """Draw a line a link; the last line to each receiver."""
    handles = {}
    for number, receiver in enumerate(receivers):
        look = line_look(number) if len(receivers) <= _ROWS else {"color": BLUE, "alpha": 0.35}
        for _, one in links[links["receiver"] == receiver].groupby("sender"):
            (handles[receiver],) = axes.plot(one["virtual_time"], one[column], **{**look, "linewidth": 0.8})
    return handles
