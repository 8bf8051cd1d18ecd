"""Figure of links' traffic: over time for few links, as a map of senders and receivers for many."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from dlion_sim.analysis.outages import path_outages, process_outages
from dlion_sim.analysis.traffic import interval_ends, interval_rates, mean_rates, utilization
from dlion_sim.errors import InputError
from dlion_sim.figures.link_map import draw_link_map
from dlion_sim.figures.looks import look_in_order
from dlion_sim.figures.panels import by_cloud, worker_names
from dlion_sim.figures.style import drawing, legend_below, shade, time_label, time_unit, title
from dlion_sim.results import Run
from dlion_sim.results.numbers import in_bytes, percent

_MAX_LINES = 8
"""The most senders or receivers whose links are drawn as lines; more are drawn as a map."""
_MAX_RECEIVERS = 3
"""The most receivers with a line each; more have a line for each micro-cloud, if those are fewer."""
_THINNEST, _THICKER = 0.8, 0.6
"""The width of the top line, and the difference to the line below, so that coinciding lines are visible."""
_HALF = 0.5
"""If all values exceed this share of the largest one, the axis does not begin at 0."""
_FULLEST = 3
"""The number of links with the highest utilization that are named."""


def plot_links(run: Run, file: Path, senders: Sequence[str] = (), receivers: Sequence[str] = ()) -> Path:
    """Draw the traffic of each directed link of `run` to `file` (.png, .svg or .pdf), and return `file`.

    If the run has a WAN, only links over it are drawn, unless senders or receivers are chosen. Up to 8 senders and
    receivers: N of Max-N (%) and the rate (Mbps) by interval, a row for each sender, a line for each receiver or, of
    more than 3, the mean of a micro-cloud with its range; shaded while the sender or a path from its micro-cloud was
    down. More: maps of the means over the run, and of the highest utilization on each route; see
    `analysis.traffic.utilization`. The highest ones are noted.

    Args:
        run: The run.
        file: The picture.
        senders: Only links from these workers and micro-clouds, by name; by default from all.
        receivers: Only links to these.

    Raises:
        InputError: There is no such worker, these have sent nothing, or a file cannot be read or written.
    """
    rates = mean_rates(run)
    if rates.empty:
        raise InputError("has sent nothing", file=run.folder)
    over_wan = not senders and not receivers and (rates["wan_bytes"] > 0).any()
    names = {**{number: f"server {number}" for number in rates["receiver"].unique()}, **worker_names(run)}
    routes = utilization(run)
    rates, routes = (
        table[
            table["sender"].isin(_chosen("senders", senders, names))
            & table["receiver"].isin(_chosen("receivers", receivers, names))
        ]
        for table in (rates, routes)
    )
    if rates.empty:
        raise InputError("has sent nothing from these senders to these receivers", file=run.folder)
    notes, sent = [], "Sent"
    if over_wan:
        inside = rates["bytes"].sum() - rates["wan_bytes"].sum()
        rates, sent = rates[rates["wan_bytes"] > 0], "Over the WAN"
        routes = routes.merge(rates[["sender", "receiver"]], on=["sender", "receiver"])
        notes = [f"only links over the WAN; those inside micro-clouds carried {in_bytes(inside)} more"]
    notes += _fullest(routes)
    if max(rates["sender"].nunique(), rates["receiver"].nunique()) > _MAX_LINES:
        full = routes.groupby(["sender", "receiver"], as_index=False)["full"].max()
        maps = rates.merge(full, how="left", on=["sender", "receiver"])
        return draw_link_map(title(run), maps, names, notes, file)
    return _draw_lines(run, rates, names, notes, sent, file)


def _chosen(argument: str, given: Sequence[str], names: dict[int, str]) -> list[int]:
    """The numbers of the workers given by name or micro-cloud; of all if none is given."""
    for name in given:
        if not any(own in (name, f"{name}/{own.rsplit('/', 1)[-1]}") for own in names.values()):
            clouds = dict.fromkeys(own.rsplit("/", 1)[0] for own in names.values())
            raise InputError(
                f"there is no worker or micro-cloud '{name}'",
                file=f"`{argument}`",
                allowed=f"{', '.join(clouds)}, or one of their workers, e.g. {names[min(names)]}",
            )
    return [number for number, own in names.items() if not given or own in given or own.rsplit("/", 1)[0] in given]


def _fullest(routes: pd.DataFrame) -> list[str]:
    """The note on the highest utilizations."""
    if routes.empty:
        return []
    full = routes.groupby("crossed")["full"].max().sort_values(ascending=False, kind="stable")[:_FULLEST]
    return ["highest utilization: " + ", ".join(f"{name} ({percent(round(part, 2))})" for name, part in full.items())]


def _draw_lines(
    run: Run, rates: pd.DataFrame, names: dict[int, str], notes: Sequence[str], sent: str, file: Path
) -> Path:
    links = interval_rates(run)
    end = links["virtual_time"].max()
    seconds, unit = time_unit(end)
    links = links.assign(rate=links["rate"] / 1e6)
    senders, receivers = sorted(rates["sender"].unique()), sorted(rates["receiver"].unique())
    columns = {"n_percent": "N of Max-N (%)", "rate": f"{sent} (Mbps)"}
    if rates["n_percent"].isna().all():
        del columns["n_percent"]

    lines = _lines(receivers, names)
    notes = [*notes, *["line: mean of a micro-cloud; band: minimum to maximum"] * (len(lines) < len(receivers))]
    with drawing(file, height=0.9 + 0.75 * len(senders)) as figure:
        figure.suptitle(title(run), x=0.02, ha="left", size=8.5)
        panels = figure.subplots(len(senders), len(columns), sharex=True, sharey="col", squeeze=False)
        handles: dict[str, Line2D] = {}
        ends, away, paths = interval_ends(run), process_outages(run), path_outages(run)
        clouds: dict[int, str] = dict(enumerate(run.manifest.get("clouds", [])))
        down: dict[str, Patch] = {}
        for row, sender in zip(panels, senders, strict=True):
            pairs = {(clouds.get(sender, ""), clouds.get(receiver, "")) for receiver in receivers}
            outages = [*away.get(sender, ()), *(each for pair in pairs for each in paths.get(pair, ()))]
            down |= shade(row, outages, end, seconds)
            row[0].set_ylabel(f"from\n{names[sender]}")
            shown = rates.loc[rates["sender"] == sender, "receiver"]
            own = links[(links["sender"] == sender) & links["receiver"].isin(shown)]
            for place, (name, of_line) in enumerate(lines.items()):
                width = _THINNEST + _THICKER * (len(lines) - 1 - place)
                look = {**look_in_order(place).line(), "linewidth": width}
                for axes, column in zip(row, columns, strict=True):
                    table = _over_links(own[own["receiver"].isin(of_line)], column, ends[sender])
                    if len(table):
                        times = table.index / seconds
                        if len(table.columns) > 1:
                            band = {"color": look["color"], "alpha": 0.2, "linewidth": 0}
                            axes.fill_between(times, table.min(axis=1), table.max(axis=1), **band)
                        (handles[name],) = axes.plot(times, table.mean(axis=1), **look)
        for axes, label in zip(panels[0], columns.values(), strict=True):
            axes.set_title(label, size=7.5)
            low, high = axes.dataLim.intervaly  # of all, as they share it
            if not low > _HALF * high:
                axes.set_ylim(bottom=0)
            axes.yaxis.set_major_locator(MaxNLocator(nbins=3))
        for axes in panels[-1]:
            axes.set_xlabel(time_label(run, unit))
            axes.set_xlim(left=0)
        legend = {**{f"to {name}": handles[name] for name in lines if name in handles}, **down}
        legend_below(figure, list(legend.values()), list(legend), notes)
    return file


def _lines(receivers: Sequence[int], names: dict[int, str]) -> dict[str, list[int]]:
    """The receivers of each line, by its name."""
    clouds = by_cloud(receivers, names)
    if _MAX_RECEIVERS < len(receivers) > len(clouds):
        return clouds
    return {names[receiver]: [receiver] for receiver in receivers}


def _over_links(links: pd.DataFrame, column: str, ends: Sequence[float]) -> pd.DataFrame:
    """The values of a sender's links by the ends of intervals, a column for each receiver."""
    # Two incarnations of a node may have a row each at the end.
    known = links.groupby(["virtual_time", "receiver"])[column].agg("sum" if column == "rate" else "mean")
    table = known.unstack("receiver").dropna(how="all")
    # An interval without traffic has no row.
    return table.reindex(pd.Index(ends)).fillna(0.0) if column == "rate" and len(table) else table
