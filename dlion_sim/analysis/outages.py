"""Outages of participants and of paths between clouds, from the run folder."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from dlion_sim.results import Run

Interval = tuple[float, float]
"""Begin and end (s); the end is infinite if it is not known to be before the run's end."""


def process_outages(run: Run) -> Mapping[int, Sequence[Interval]]:
    """When the process of each participant, by number, did not run, in order; only of those with outages.

    Raises InputError if the membership cannot be read.
    """
    return _until(run, ("up",))


def training_outages(run: Run) -> Mapping[int, Sequence[Interval]]:
    """As `process_outages`, but each ends when the worker has its state and trains again."""
    return _until(run, ("joined", "begins_anew"))


def _until(run: Run, back: Collection[str]) -> Mapping[int, Sequence[Interval]]:
    """The outages of each participant, which end with an event in `back`."""
    rows = run.membership()
    changes = rows[rows["what"].isin(["down", "left", *back])].sort_values("virtual_time", kind="stable")
    found = {
        int(str(number)): list(_outages(zip(own["virtual_time"], own["what"].isin(back), strict=True)))
        for number, own in changes.groupby("participant")
    }
    return {number: intervals for number, intervals in found.items() if intervals}


def _outages(changes: Iterable[tuple[float, bool]]) -> Iterator[Interval]:
    begin = math.inf
    for time, is_back in changes:
        if not is_back:
            begin = min(begin, time)
            continue
        if begin < time:
            yield begin, time
        begin = math.inf
    if begin < math.inf:
        yield begin, math.inf


def path_outages(run: Run) -> Mapping[tuple[str, str], Sequence[Interval]]:
    """The outages of paths, by sending and receiving cloud, as the scenario states them; none of a live run."""
    found: dict[tuple[str, str], list[Interval]] = {}
    for each in run.manifest.get("paths_down", []) if run.manifest.get("way") != "live" else []:
        end = math.inf if each["end"] is None else each["end"]
        found.setdefault((each["sender"], each["receiver"]), []).append((each["begin"], end))
    return found


def common_outages(runs: Sequence[Run]) -> list[Interval]:
    """The times at which a participant or a path was down in each of the runs, in order and disjoint.

    After a run's end, the other runs decide.
    """
    ends = [(run.summary or {}).get("virtual_seconds", math.inf) for run in runs]
    edges = []
    for run, end in zip(runs, ends, strict=True):
        after = [(end, math.inf)] if end < max(ends) else []
        outages = chain(*process_outages(run).values(), *path_outages(run).values(), after)
        for begin, back in union(outages):
            edges += [(begin, 1), (back, -1)]
    found, down, since = [], 0, 0.0
    for time, change in sorted(edges):
        if down == len(runs) and since < time:
            found.append((since, time))
        down, since = down + change, time
    return found


def clipped(intervals: Iterable[Interval], begin: float, end: float) -> Iterator[Interval]:
    """The parts of the intervals between two times, in their order."""
    for since, until in intervals:
        if max(begin, since) < min(end, until):
            yield max(begin, since), min(end, until)


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The union of the intervals, in order and disjoint."""
    found: list[Interval] = []
    for begin, end in sorted(intervals):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found
