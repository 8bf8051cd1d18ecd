"""What happened to a run: who was away and came back, what that cost, and how long spot machines were there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dlion_sim.analysis.outages import Interval, absences, paths_down, within
from dlion_sim.cli.conventions import some
from dlion_sim.results import Run, participants
from dlion_sim.results.cost import spot_machines
from dlion_sim.results.numbers import in_bytes, number

_HOUR = 3600.0


def happened(run: Run) -> Iterator[str]:
    """A few lines; none where nobody came or went and nothing was down. Raises InputError where it cannot be read."""
    summary = run.summary or {}
    end, names = float(summary["virtual_seconds"]), participants(run.manifest)
    away = {names[number]: spans for number, spans in absences(run).items() if number < len(names)}
    if away:
        yield f"away: {some([f'{name} {_times(spans, end)}' for name, spans in away.items()])}"
    if told := summary.get("availability"):
        yield from _joins(run, told)
        yield from _losses(told)
    down = {f"{one} to {other}": spans for (one, other), spans in paths_down(run).items()}
    told_paths = [f"{path} {_times(spans, end)}" for path, spans in down.items() if any(within(spans, 0, end))]
    if told_paths:
        yield f"paths down: {some(told_paths)}"
    yield from _spot(run, away, end)


def _times(spans: Sequence[Interval], end: float) -> str:
    """How often and for how long, until the run's end (s)."""
    known = list(within(spans, 0.0, end))
    often = "once" if len(known) == 1 else f"{len(known)} times"
    still = ", and at the end" if any(until > end for _, until in spans) else ""
    return f"{often}, {number(sum(until - since for since, until in known))} s{still}"


def _joins(run: Run, told: Mapping[str, Any]) -> Iterator[str]:
    changes = run.membership()["what"].value_counts()
    joined, anew = int(changes.get("joined", 0)), int(changes.get("begins_anew", 0))
    if joined:
        seconds = told.get("to_join", {}).get("mean")
        after = "" if seconds is None else f", {number(seconds)} s after its process began on average"
        fetched = f", {in_bytes(told['state_bytes'])} of state fetched" if told.get("state_bytes") else ""
        yield f"joined: {'once' if joined == 1 else f'{joined} times'}{after}{fetched}"
    if anew:
        yield f"training began anew {'once' if anew == 1 else f'{anew} times'}, as nobody had any state left"


def _losses(told: Mapping[str, Any]) -> Iterator[str]:
    computed, messages = told.get("computed", 0), told.get("messages", {})
    in_vain = computed - told.get("useful", computed)
    parts = [
        *([f"{number(told['lost_seconds'])} s of computing"] if told.get("lost_seconds") else []),
        *([f"{in_vain} of {computed} samples in vain"] if in_vain else []),
        *(f"{_counted(messages[what], 'message')} {what}" for what in ("cut", "refused") if messages.get(what)),
    ]
    if parts:
        yield f"work lost: {', '.join(parts)}"


def _spot(run: Run, away: Mapping[str, Sequence[Interval]], end: float) -> Iterator[str]:
    tariff = run.manifest.get("tariff")
    names = participants(run.manifest)
    machines = [names[number] for number in spot_machines(tariff) if number < len(names)] if tariff else []
    if machines:
        gone = math.fsum(until - since for name in machines for since, until in within(away.get(name, ()), 0.0, end))
        hours = len(machines) * end / _HOUR
        there = f"{number(hours - gone / _HOUR)} of {number(hours)} hours"
        yield f"spot: {_counted(len(machines), 'machine')}, there for {there}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
