"""What each worker did, step by step: it computed, waited, or was away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from dlion_sim.analysis.messages import SAME
from dlion_sim.analysis.outages import Interval, not_taking_part, within
from dlion_sim.results import TESTS, Run

QUEUE = "queue"
"""The reason of a wait for an own message to leave."""
AWAY = "away"
"""The kind of a step in which a worker was leaving, was not there, or had no state yet."""
_NUMBERS = ("compute_seconds", "wait_seconds", "prep_seconds", "fetch_seconds", "batch_size")
"""Where there is none, it is 0."""
_OF_STEPS = ["worker", "kind", "virtual_time", *_NUMBERS, "waited_for", "wait_reason"]


class Cause(NamedTuple):
    """What a wait was for, and for how long (s).

    That is a message on its way from `sender` to `receiver`, or that one of them was away meanwhile; or what its sender
    did before: it computed, or waited for its samples to be prepared or read.
    """

    what: Literal["message", "away", "computing", "prep", "fetch"]
    seconds: float
    sender: int
    receiver: int


class Step(NamedTuple):
    """A row of a worker: it computes from `begin` to `ready`, and waits from then to `end` (s)."""

    worker: int
    kind: str
    """As in the metrics: "iteration", "profile", or "unfinished" and "cut" for what the run's end or the worker's cut
    off; or `AWAY`, from `begin` to `end`."""
    begin: float
    ready: float
    end: float
    prep: float
    """Of its computation, the seconds in which samples had still to be prepared."""
    fetch: float
    """And in which they had still to be read."""
    samples: int
    """Of its batch."""
    waited_for: int | None
    reason: str | None

    def causes(self, receiver: int) -> Iterator[Cause]:
        """What the worker did before it had computed, the last one first, for whom waits for the outcome."""
        what: Literal["away", "computing"] = "away" if self.kind == AWAY else "computing"
        yield Cause(what, self.ready - self.begin - self.prep - self.fetch, self.worker, receiver)
        yield Cause("fetch", self.fetch, self.worker, receiver)
        yield Cause("prep", self.prep, self.worker, receiver)


def steps(run: Run) -> dict[int, list[Step]]:
    """What each worker did, in order, and when it was away. Raises InputError where the run cannot be read."""
    metrics = run.metrics()
    rows = metrics[~metrics["kind"].isin(TESTS)].sort_values("virtual_time", kind="stable")
    rows = rows.fillna(dict.fromkeys(_NUMBERS, 0))
    found: dict[int, list[Step]] = {worker: [] for worker in range(len(run.manifest["workers"]))}
    told = rows[_OF_STEPS].itertuples(index=False)
    for worker, kind, end, computed, waited, prep, fetch, samples, peer, reason in told:
        ready = end - waited
        cause = (int(peer), str(reason)) if peer == peer and isinstance(reason, str) else (None, None)
        found[worker].append(Step(worker, str(kind), ready - computed, ready, end, prep, fetch, int(samples), *cause))
    end = float(rows["virtual_time"].max())
    for worker, absent in not_taking_part(run).items():
        if worker in found:
            found[worker] = [*_with_absences(worker, found[worker], absent, end)]
    return found


def _with_absences(worker: int, own: Sequence[Step], absent: Sequence[Interval], end: float) -> Iterator[Step]:
    """A worker's steps, and one of each time between them, or until the run's end, in which it took no part.

    It begins as the step before it ends: who leaves in good order is about to from then on.
    """
    before = 0.0
    for step in (*own, None):
        for gone, back in within(absent, before, step.begin if step else end):
            if back - gone > SAME:
                yield Step(worker, AWAY, before, back, back, 0.0, 0.0, 0, None, None)
                before = back
        if step:
            yield step
            before = step.end
