"""Nodes of this machine that leave and return, when the scenario says so."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from dlion_sim.assembly.outages import Outage
from dlion_sim.live.run_nodes import RunNodes
from dlion_sim.live.timetable import Timetable
from dlion_sim.results import MembershipRow


@dataclass(frozen=True, order=True)
class Change:
    """A change of a participant's availability at a time, in seconds since the run's start."""

    time: float
    rank: int
    what: Literal["notice", "end", "return"]
    incarnation: int
    """Of the process that ends or joins."""


class Churn(Timetable):
    """Ends nodes and starts others in their place, until the end of the block.

    A node that crashes, or has not left by the time of a preemption, is killed; one that is to leave gets SIGTERM, and
    is killed if its machine crashes before it has left.
    """

    def __init__(self, nodes: RunNodes) -> None:
        super().__init__()
        self._nodes = nodes
        availability = nodes.setting.scenario.availability
        self._restart = availability.restart if availability else 0.0
        self.rows: list[MembershipRow] = []
        """The changes that were made."""

    @property
    def manifest(self) -> dict[str, Any]:
        """Its part of a run's manifest; empty without changes."""
        if not self.rows:
            return {}
        return {"churn": {"crash": "SIGKILL", "leave": "SIGTERM", "seconds_late": self.most_seconds_late}}

    def begin(self) -> None:
        """Make the changes, by the nodes' clock."""
        absent = self._nodes.setting.outages.absent_at_start
        self.rows += [MembershipRow(0.0, rank, 0, "down") for rank in sorted(absent)]
        self.follow(self._nodes.clock, ((each.time, partial(self._make, each)) for each in self._changes()))

    def expects_more(self) -> bool:
        """Whether nodes are still to join after all others have ended."""
        following, duration = self.next_time, self._nodes.setting.scenario.duration or math.inf
        return following is not None and following < duration and self._nodes.all_are_down

    def _changes(self) -> Iterator[Change]:
        """All changes in order, perhaps without end."""
        setting = self._nodes.setting
        participants = range(setting.participants)
        return heapq.merge(*(_of(rank, setting.outages.participant(rank), self._restart) for rank in participants))

    def _make(self, change: Change) -> None:
        began = self._nodes.clock.wait()
        assert began is not None, "changes of a run that has not begun"
        now = time.monotonic() - began
        match change.what:
            case "notice":
                self._nodes.tell_to_leave(change.rank)
                self.rows.append(MembershipRow(now, change.rank, change.incarnation, "noticed"))
            case "end":
                if self._nodes.kill(change.rank):
                    self.rows.append(MembershipRow(now, change.rank, change.incarnation, "down"))
            case "return":
                self._nodes.join(change.rank, change.incarnation, began)
                further = self._nodes.setting.outages.next_after(change.rank, change.time)
                if further and math.isfinite(further.end):
                    self._nodes.stand_by(change.rank, change.incarnation + 1)


def _of(rank: int, outages: Iterator[Outage], restart: float) -> Iterator[Change]:
    """A participant's changes, in order."""
    incarnation, back = 0, 0.0
    for outage in outages:
        if outage.begin > 0:
            if outage.kind != "crash":
                yield Change(max(back, outage.begin - outage.notice), rank, "notice", incarnation)
            if math.isfinite(outage.killed_at):
                yield Change(outage.killed_at, rank, "end", incarnation)
            incarnation += 1
        back = outage.end + restart
        if math.isfinite(back):
            yield Change(back, rank, "return", incarnation)
