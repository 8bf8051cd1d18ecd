"""Readers of published availability traces: one function per format."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dlion_sim.scenario.availability_text import MOST_MACHINES, count_of, fault, json_of, rows, table, time_of
from dlion_sim.scenario.faults import RuleError, listed
from dlion_sim.scenario.outages import LEAST, Interval
from dlion_sim.scenario.units import DURATION

Times = tuple[list[Interval], float | None]
"""Outages of a machine, and the period in seconds after which they repeat; None: they do not."""


def read_nodes(file: Path, unit: str) -> list[Times]:
    """Lines `time,add,node` and `time,remove,node`, as of Oobleck (SOSP'23), with times in the unit.

    Clouds give each instance a new name, so an added one takes the slot that is empty for longest; the result has the
    outages of each slot. A node whose first event is its removal is up from the start.
    """
    events: list[tuple[int, float, bool, str]] = []
    for line, (time, what, node) in rows(file, "time", "add|remove", "node"):
        if what not in ("add", "remove"):
            raise fault(file, line, f"{what!r} is not an event", "add, remove")
        events.append((line, time_of(file, line, time, unit, events[-1][1] if events else 0.0), what == "add", node))
    first_adds: dict[str, bool] = {}
    for _, _, adds, node in events:
        first_adds.setdefault(node, adds)
    place = {node: number for number, node in enumerate(node for node, adds in first_adds.items() if not adds)}
    down: list[list[Interval]] = [[] for _ in place]
    empty: deque[tuple[int, float]] = deque()
    for line, at, adds, node in events:
        if adds == (node in place):
            raise fault(file, line, f"'{node}' was added already" if adds else f"'{node}' was not added")
        if not adds:
            empty.append((place.pop(node), at))
            continue
        if not empty:
            empty.append((len(down), 0.0))
            down.append([])
        place[node], since = empty.popleft()
        if at > since:
            down[place[node]].append((since, at))
    for number, since in empty:
        down[number].append((since, math.inf))
    return _bounded(file, [(times, None) for times in down])


def read_counts(file: Path, unit: str) -> dict[float, int]:
    """Lines `time,count`, as of Bamboo (NSDI'23) and Parcae (NSDI'24), with times in the unit.

    The last of several counts at one time is used. The first time becomes 0.
    """
    counts: dict[float, int] = {}
    first, last = 0.0, 0.0
    for line, (time, machines) in rows(file, "time", "count"):
        last = time_of(file, line, time, unit, last)
        first = last if not counts else first
        counts[last - first] = count_of(file, line, machines)
    return counts


def read_simgrid(file: Path) -> Times:
    """A profile of a state of SimGrid: lines `time state` in seconds, with PERIODICITY or LOOPAFTER where it repeats.

    Before its first line the machine is up.
    """
    events: list[tuple[float, bool]] = []
    period = pause = None
    for line, (time, state) in rows(file, "time", "state", separator=None):
        if time == "PERIODICITY":
            period = time_of(file, line, state, "s")
        elif time == "LOOPAFTER":
            pause = time_of(file, line, state, "s")
        elif state not in ("0", "1", "0.0", "1.0"):
            raise fault(file, line, f"{state!r} is not a state", "0, 1")
        else:
            events.append((time_of(file, line, time, "s", events[-1][0] if events else 0.0), state.startswith("1")))
    if not events:
        raise RuleError(f"trace {file} has no states")
    if pause is not None:
        period = events[-1][0] + pause
    if period is not None and period < max(events[-1][0], LEAST):
        raise RuleError(f"trace {file} repeats before its last state", allowed="a longer PERIODICITY")
    again = [] if period is None else [(at + period, up) for at, up in events]
    down: list[Interval] = []
    since = None
    for at, up in [*events, *again, (math.inf, True)]:
        if up and since is not None:
            if at > since:
                down.append((since, at))
            since = None
        elif not up and since is None and (period is None or at < period):
            since = at
    return down, period if down and down[-1][1] < math.inf else None


def read_fedscale(file: Path) -> list[Times]:
    """FedScale's client_behave_trace (ICML'22) as JSON: {client: {active: [from, ...], inactive: [until, ...],
    finish_time: period}} in seconds; or of one client alone."""
    content = json_of(file)
    clients = {"": content} if isinstance(content, Mapping) and "active" in content else content
    if not isinstance(clients, Mapping) or not clients:
        raise RuleError(f"trace {file} holds no clients", allowed="{client: {active: [0], inactive: [9], ...}, ...}")
    return _bounded(file, [_of_client(file, name, client) for name, client in clients.items()])


def _of_client(file: Path, name: str, client: Any) -> Times:
    try:
        starts, ends, period = client["active"], client["inactive"], client["finish_time"]
        times = [*starts, *ends, period]
    except (TypeError, KeyError):
        times = [None]
    if not all(type(each) in (int, float) and 0 <= each <= DURATION.most for each in times) or period <= 0:
        raise RuleError(f"trace {file}: client {name!r} has no times", allowed="active, inactive, finish_time")
    if len(starts) != len(ends) or any(end < start for start, end in zip(starts, ends, strict=True)):
        raise RuleError(f"trace {file}: client {name!r} does not become inactive each time after it became active")
    down: list[Interval] = []
    since = 0.0
    for start, end in sorted(zip(starts, ends, strict=True)):
        if since < start < period and end > start:
            down.append((since, float(start)))
        since = max(since, end) if end > start else since
    if since == 0:
        return [(0.0, math.inf)], None
    if since < period:
        down.append((float(since), float(period)))
    return down, float(period) if down else None


def read_skypilot(file: Path) -> dict[float, int]:
    """A spot trace of SkyPilot (NSDI'24) as JSON: {metadata: {gap_seconds: 300}, data: [count, ...]}."""
    content = json_of(file)
    try:
        gap, data = content["metadata"]["gap_seconds"], content["data"]
    except (TypeError, KeyError):
        raise RuleError(f"trace {file} has no data", allowed="{metadata: {gap_seconds: 300}, data: [4, ...]}") from None
    if type(gap) not in (int, float) or not 0.001 <= gap <= 1e6 or not isinstance(data, list) or not data:
        raise RuleError(f"trace {file} has no gap_seconds, or no data")
    counts: dict[float, int] = {}
    last = None
    for place, machines in enumerate(data):
        if machines != last:
            counts[float(place * gap)] = count_of(file, None, machines)
        last = machines
    return counts


def read_intervals(file: Path, where: Mapping[str, object]) -> dict[float, int]:
    """A CSV table with columns start_s, end_s and value, the number of machines up; each row starts where the previous
    one ends. `where` selects the rows of one series by the values of their columns."""
    counts: dict[float, int] = {}
    first, until = None, None
    for line, row in table(file, where, "start_s", "end_s", "value"):
        start, end = (time_of(file, line, row[each], "s") for each in ("start_s", "end_s"))
        if start != (start if until is None else until) or end <= start:
            columns = listed([each for each in row if each])
            raise fault(
                file, line, "does not start where the previous row ends", f"one series, by where: columns {columns}"
            )
        first = start if first is None else first
        counts[start - first], until = count_of(file, line, row["value"]), end
    return counts


def read_lifetimes(file: Path, where: Mapping[str, object]) -> list[float]:
    """The column lifetime_s of a CSV table, in the rows whose columns have the values of `where`."""
    return [max(time_of(file, line, row["lifetime_s"], "s"), LEAST) for line, row in table(file, where, "lifetime_s")]


def _bounded(file: Path, machines: list[Times]) -> list[Times]:
    if not 0 < len(machines) <= MOST_MACHINES:
        raise RuleError(f"trace {file} has {len(machines)} machines", allowed=f"1 to {MOST_MACHINES}")
    return machines
