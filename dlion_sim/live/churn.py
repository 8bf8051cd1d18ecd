"""Nodes that go and come back on this machine, when the scenario says so."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from dlion_sim.assembly.outages import Outage
from dlion_sim.live.clock import Clock
from dlion_sim.live.run_nodes import RunNodes
from dlion_sim.live.timetable import Timetable
from dlion_sim.results import MembershipRow


@dataclass(frozen=True, order=True)
class Change:
    """What is to happen to a participant at a time, in seconds since the run's start."""

    time: float
    rank: int
    what: Literal["told", "ended", "back"]
    incarnation: int
    """Of the process that goes or comes."""


class Churn:
    """Ends nodes and has others take their place, until the end of the block.

    Who crashes, or has not left by the time of a preemption, is killed; who is to leave is asked to terminate. What
    goes wrong meanwhile is raised at the end of the block.
    """

    def __init__(self, nodes: RunNodes) -> None:
        self._nodes = nodes
        availability = nodes.setting.scenario.availability
        self._restart = availability.restart if availability else 0.0
        self._timetable = Timetable()
        self.rows: list[MembershipRow] = []
        """What was done to whom, and when."""

    @property
    def told(self) -> dict[str, Any]:
        """What a run's manifest says of it, if anything was done."""
        if not self.rows:
            return {}
        return {"churn": {"crash": "SIGKILL", "leave": "SIGTERM", "seconds_late": self._timetable.most_seconds_late}}

    def follow(self, clock: Clock) -> None:
        """The times are those of this clock, from now on."""
        absent = self._nodes.setting.outages.absent_at_start
        self.rows += [MembershipRow(0.0, rank, 0, "down") for rank in sorted(absent)]
        self._timetable.follow(clock, ((each.time, partial(self._make, each, clock)) for each in self._changes()))

    def expects_more(self) -> bool:
        """Whether somebody is still to come, where all who were there had to go."""
        coming, duration = self._timetable.next_time, self._nodes.setting.scenario.duration or math.inf
        return coming is not None and coming < duration and self._nodes.all_had_to_go

    def __enter__(self) -> Churn:
        self._timetable.__enter__()
        return self

    def __exit__(self, *ended: Any) -> None:
        self._timetable.__exit__(*ended)

    def _changes(self) -> Iterator[Change]:
        """All changes in order; without end if somebody's are."""
        setting = self._nodes.setting
        participants = range(setting.participants)
        return heapq.merge(*(_of(rank, setting.outages.participant(rank), self._restart) for rank in participants))

    def _make(self, change: Change, clock: Clock) -> None:
        began = clock.wait()
        assert began is not None, "changes of a run that has not begun"
        now = time.monotonic() - began
        match change.what:
            case "told":
                self._nodes.tell_to_leave(change.rank)
                self.rows.append(MembershipRow(now, change.rank, change.incarnation, "noticed"))
            case "ended":
                if self._nodes.kill(change.rank):
                    self.rows.append(MembershipRow(now, change.rank, change.incarnation, "down"))
            case "back":
                self._nodes.join(change.rank, change.incarnation, began)
                further = self._nodes.setting.outages.next_after(change.rank, change.time)
                if further and math.isfinite(further.end):
                    self._nodes.stand_by(change.rank, change.incarnation + 1)


def _of(rank: int, outages: Iterator[Outage], restart: float) -> Iterator[Change]:
    """What is to happen to a participant, in order."""
    incarnation, back = 0, 0.0
    for outage in outages:
        if outage.begin > 0:
            if outage.kind != "crash":
                yield Change(max(back, outage.begin - outage.notice), rank, "told", incarnation)
            if outage.kind != "leave":
                yield Change(outage.begin, rank, "ended", incarnation)
            incarnation += 1
        back = outage.end + restart
        if math.isfinite(back):
            yield Change(back, rank, "back", incarnation)
