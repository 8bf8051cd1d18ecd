"""When somebody was not there, or nothing went over a path between clouds."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from dlion_sim.results import Run

Interval = tuple[float, float]
"""Begin and end (s); infinite where it went on to the run's end."""


def absences(run: Run) -> Mapping[int, Sequence[Interval]]:
    """When the process of each participant, by number, did not run, in order; who was always there is not among them.

    Raises InputError where the membership cannot be read.
    """
    return _until(run, ("up",))


def not_taking_part(run: Run) -> Mapping[int, Sequence[Interval]]:
    """As `absences`, but each lasts until its worker has the state, and trains again.

    Raises InputError where the membership cannot be read.
    """
    return _until(run, ("joined", "begins_anew"))


def _until(run: Run, back: Collection[str]) -> Mapping[int, Sequence[Interval]]:
    """When each participant was gone, until one of `back` became of it."""
    told = run.membership()
    changes = told[told["what"].isin(["down", "left", *back])].sort_values("virtual_time", kind="stable")
    of_each = {int(str(number)): own for number, own in changes.groupby("participant")}
    found = {
        number: list(_absences(zip(own["virtual_time"], own["what"].isin(back), strict=True)))
        for number, own in of_each.items()
    }
    return {number: intervals for number, intervals in found.items() if intervals}


def _absences(changes: Iterable[tuple[float, bool]]) -> Iterator[Interval]:
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


def paths_down(run: Run) -> Mapping[tuple[str, str], Sequence[Interval]]:
    """When nothing went from a cloud to another one, by both, as the scenario has it; of a live run nobody knows."""
    found: dict[tuple[str, str], list[Interval]] = {}
    for each in run.manifest.get("paths_down", []) if run.manifest.get("way") != "live" else []:
        end = math.inf if each["end"] is None else each["end"]
        found.setdefault((each["sender"], each["receiver"]), []).append((each["begin"], end))
    return found


def down_in_all(runs: Sequence[Run]) -> list[Interval]:
    """The times at which somebody or a path of each of the runs was down, in order and apart.

    What would have come after a run's end does not speak against them.
    """
    ends = [(run.summary or {}).get("virtual_seconds", math.inf) for run in runs]
    edges = []
    for run, end in zip(runs, ends, strict=True):
        after = [(end, math.inf)] if end < max(ends) else []
        for begin, back in united([*chain(*absences(run).values(), *paths_down(run).values()), *after]):
            edges += [(begin, 1), (back, -1)]
    found, down, since = [], 0, 0.0
    for time, change in sorted(edges):
        if down == len(runs) and since < time:
            found.append((since, time))
        down, since = down + change, time
    return found


def within(intervals: Iterable[Interval], begin: float, end: float) -> Iterator[Interval]:
    """What of the intervals lies between two times, in their order."""
    for since, until in intervals:
        if max(begin, since) < min(end, until):
            yield max(begin, since), min(end, until)


def united(intervals: Iterable[Interval]) -> list[Interval]:
    """The times of any of them, in order and apart."""
    united: list[Interval] = []
    for begin, end in sorted(intervals):
        if united and begin <= united[-1][1]:
            united[-1] = united[-1][0], max(end, united[-1][1])
        else:
            united.append((begin, end))
    return united
