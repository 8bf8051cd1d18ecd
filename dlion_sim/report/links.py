"""Links over time: rates, utilization of their routes, and N of Max-N."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlion_sim.analysis.traffic import capacities
from dlion_sim.report import thinning
from dlion_sim.report.thinning import packed
from dlion_sim.results import Run, clouds_of, participants

_MAX_LINKS = 90
"""The most rows that are shown: all pairs of ten."""
_MAX_ROUTES = 20_000
"""The most links whose routes are computed."""
_MAX_INTERVALS = 300
_COUNTS = ("bytes", "gradients", "weighted")
_BITS = 8

Table = npt.NDArray[np.float64]
"""A row for each link, a column for each interval."""


def links_over(run: Run, metrics: pd.DataFrame, links: pd.DataFrame, end: float) -> dict[str, Any] | None:
    """A row for each directed link, or pair of clouds if these are too many, and a column for each interval; None
    without
    links.

    `edges` (s) are those of the intervals, `nodes` the `name` and `cloud` of the ends of `pairs`; `rate` is in bits per
    second and `full` the utilization of the fullest link of the route, NaN if unknown; `n_percent` is N of Max-N.
    `total` is the number of links, and `hidden` the number of rows left out: those within micro-clouds, and with least
    traffic.
    """
    if links.empty:
        return None
    edges = _edges(metrics, links, end)
    pairs, counts = _tables(links, edges)
    total = len(pairs)
    full = _utilization(run, pairs, counts["bytes"], edges) if total <= _MAX_ROUTES else None
    names, clouds = participants(run.manifest), clouds_of(run.manifest)
    nodes = [{"name": name, "cloud": cloud} for name, cloud in zip(names, clouds, strict=False)]
    if total > _MAX_LINKS and len({*clouds}) > 1:
        nodes, pairs, counts, full = _by_cloud(clouds, pairs, counts, full)
    is_within = np.array([nodes[a]["cloud"] == nodes[b]["cloud"] for a, b in pairs])
    busiest = np.sort(np.lexsort((-counts["bytes"].sum(axis=1), is_within))[:_MAX_LINKS])
    seconds = np.diff(edges)
    with np.errstate(invalid="ignore", divide="ignore"):
        n_percent = counts["weighted"] / counts["gradients"]
    return {
        "nodes": nodes,
        "pairs": [pairs[place] for place in busiest],
        "edges": edges.tolist(),
        "rate": packed(_BITS * counts["bytes"][busiest] / seconds),
        "full": None if full is None else packed(full[busiest]),
        "n_percent": packed(n_percent[busiest]) if np.isfinite(n_percent).any() else None,
        "total": total,
        "hidden": len(pairs) - len(busiest),
    }


def _edges(metrics: pd.DataFrame, links: pd.DataFrame, end: float) -> Table:
    """The edges (s) of the recorded intervals, which evaluations end, or of several of them together."""
    evaluated = metrics.loc[metrics["kind"] == "evaluation", "virtual_time"]
    times = np.unique(np.concatenate([[0.0], links["virtual_time"], evaluated, [end]]))
    return times[thinning.intervals(times, _MAX_INTERVALS)]


def _tables(links: pd.DataFrame, edges: Table) -> tuple[list[tuple[int, int]], dict[str, Table]]:
    """The links in order, and the sums of each count."""
    weighted = (links["n_percent"] * links["gradients"]).fillna(0.0)
    counted = links.assign(weighted=weighted, gradients=links["gradients"].where(links["n_percent"].notna(), 0))
    counted["interval"] = np.clip(np.searchsorted(edges, links["virtual_time"]) - 1, 0, len(edges) - 2)
    sums = counted.groupby(["sender", "receiver", "interval"])[[*_COUNTS]].sum()
    first = pd.MultiIndex.from_frame(
        counted[["sender", "receiver"]].drop_duplicates().sort_values(["sender", "receiver"])
    )
    tables = {}
    for name in _COUNTS:
        wide = sums[name].unstack("interval").reindex(index=first, columns=range(len(edges) - 1))
        tables[name] = wide.fillna(0.0).to_numpy(dtype=float)
    return [(int(a), int(b)) for a, b in first], tables


def _utilization(run: Run, pairs: list[tuple[int, int]], carried: Table, edges: Table) -> Table | None:
    """The utilization of the fullest link on each route in each interval; None if unknown."""
    routes = capacities(run, pairs, edges.tolist())
    if routes is None:
        return None
    seconds = np.diff(edges)
    loads: dict[str, Table] = {}
    for place, route in enumerate(routes):
        for name, _ in route:
            loads[name] = loads.get(name, 0.0) + _BITS * carried[place]
    full = np.full(carried.shape, np.nan)
    for place, route in enumerate(routes):
        for name, capacity in route:
            with np.errstate(invalid="ignore", divide="ignore"):
                share = loads[name] / (np.array(capacity) * seconds)
            full[place] = np.fmax(full[place], np.where(np.isfinite(share), share, np.nan))
    return full


def _by_cloud(
    clouds: Sequence[str], pairs: list[tuple[int, int]], counts: dict[str, Table], full: Table | None
) -> tuple[list[dict[str, str]], list[tuple[int, int]], dict[str, Table], Table | None]:
    """The same for pairs of clouds, with the maximum of their utilizations."""
    names = list(dict.fromkeys(clouds))
    number = {name: place for place, name in enumerate(names)}
    joined = [(number[clouds[a]], number[clouds[b]]) for a, b in pairs]
    different = sorted(set(joined))
    place = {pair: row for row, pair in enumerate(different)}
    rows = np.array([place[pair] for pair in joined])
    sums = {}
    for name, table in counts.items():
        sums[name] = np.zeros((len(different), table.shape[1]))
        np.add.at(sums[name], rows, table)
    fullest = None
    if full is not None:
        fullest = np.full((len(different), full.shape[1]), np.nan)
        np.fmax.at(fullest, rows, full)
    return [{"name": name, "cloud": name} for name in names], different, sums, fullest
