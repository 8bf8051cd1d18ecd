"""What links carried over time, and how full their way was."""

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

_MOST_LINKS = 90
"""That are shown: all pairs of ten."""
_MOST_MODELLED = 20_000
"""Whose ways are looked up."""
_MOST_INTERVALS = 300
_COUNTS = ("bytes", "gradients", "weighted")
_BITS = 8

Table = npt.NDArray[np.float64]
"""A row a link, a column an interval."""


def links_over(run: Run, metrics: pd.DataFrame, links: pd.DataFrame, end: float) -> dict[str, Any] | None:
    """A row a directed link, or a pair of clouds where these are too many, and a column an interval; None without any.

    `edges` (s) are of the intervals, `nodes` has the `name` and `cloud` of those that `pairs` join; `rate` is in bits
    per second and `full` the share of what the fullest thing on the way can carry, NaN where that is unknown;
    `n_percent` is N of Max-N. `total` is how many links there are, and `hidden` how many rows are left out:
    those within micro-clouds, and which carried least.
    """
    if links.empty:
        return None
    edges = _edges(metrics, links, end)
    pairs, counts = _tables(links, edges)
    total = len(pairs)
    full = _fullness(run, pairs, counts["bytes"], edges) if total <= _MOST_MODELLED else None
    names, where = participants(run.manifest), clouds_of(run.manifest)
    nodes = [{"name": name, "cloud": cloud} for name, cloud in zip(names, where, strict=False)]
    if total > _MOST_LINKS and len({*where}) > 1:
        nodes, pairs, counts, full = _by_cloud(where, pairs, counts, full)
    is_within = np.array([nodes[a]["cloud"] == nodes[b]["cloud"] for a, b in pairs])
    busiest = np.sort(np.lexsort((-counts["bytes"].sum(axis=1), is_within))[:_MOST_LINKS])
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
    """When the recorded intervals begin and end (s), or several of them together; evaluations end them."""
    evaluated = metrics.loc[metrics["kind"] == "evaluation", "virtual_time"]
    times = np.unique(np.concatenate([[0.0], links["virtual_time"], evaluated, [end]]))
    return times[thinning.intervals(times, _MOST_INTERVALS)]


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


def _fullness(run: Run, pairs: list[tuple[int, int]], carried: Table, edges: Table) -> Table | None:
    """How full the fullest thing that each link crosses was in each interval; None where nobody knows."""
    crossed = capacities(run, pairs, edges.tolist())
    if crossed is None:
        return None
    seconds = np.diff(edges)
    loads: dict[str, Table] = {}
    for place, things in enumerate(crossed):
        for name, _ in things:
            loads[name] = loads.get(name, 0.0) + _BITS * carried[place]
    full = np.full(carried.shape, np.nan)
    for place, things in enumerate(crossed):
        for name, capacity in things:
            with np.errstate(invalid="ignore", divide="ignore"):
                share = loads[name] / (np.array(capacity) * seconds)
            full[place] = np.fmax(full[place], np.where(np.isfinite(share), share, np.nan))
    return full


def _by_cloud(
    where: Sequence[str], pairs: list[tuple[int, int]], counts: dict[str, Table], full: Table | None
) -> tuple[list[dict[str, str]], list[tuple[int, int]], dict[str, Table], Table | None]:
    """The same of the clouds that links join; of these the fullest counts."""
    names = list(dict.fromkeys(where))
    number = {name: place for place, name in enumerate(names)}
    joined = [(number[where[a]], number[where[b]]) for a, b in pairs]
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
