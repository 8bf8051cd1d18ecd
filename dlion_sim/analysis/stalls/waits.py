"""Causes of waits, traced back from their end over messages and computations."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dlion_sim.analysis.outages import Interval, clipped, training_outages, union
from dlion_sim.analysis.stalls.steps import AWAY, QUEUE, SAME, Cause, Step, machines, messages
from dlion_sim.analysis.traffic import modelled_scenario
from dlion_sim.results import Run, participants

_MAX_MESSAGES = 100_000
"""The most messages that a wait is traced back over; a ring of tens of workers and hundreds of buckets has as many."""
_IN_TRANSIT = ("message", "away")
"""Causes that may overlap with the waiting worker's computation."""


class _Sent(NamedTuple):
    """A message's `arrival` and since when its sender's queue was busy (s)."""

    arrival: float
    since: float
    sender: int
    receiver: int


class Causes:
    """Finds the causes of the waits of a run.

    A wait ends with a message, which was in transit since its sender's queue became busy. Before that the sender
    computed, or received a message, and so on, back to the begin of the wait. A message without a record counts as in
    transit since its sender's last computation.
    """

    def __init__(self, run: Run, of_workers: Mapping[int, Sequence[Step]]) -> None:
        self._steps = of_workers
        self._ready = {worker: [step.ready for step in own] for worker, own in of_workers.items()}
        self._away = training_outages(run)
        scenario = modelled_scenario(run)
        self._machine = machines(scenario, len(of_workers), len(participants(run.manifest)))
        self._on_link: dict[tuple[int, int, str], list[_Sent]] = defaultdict(list)
        self._to: dict[int, list[_Sent]] = defaultdict(list)
        sent_messages = messages(run, scenario)[["kind", "arrival", "since", "sender", "receiver"]]
        for kind, *columns in sent_messages.itertuples(index=False):
            sent = _Sent(*columns)
            self._on_link[sent.sender, sent.receiver, str(kind)].append(sent)
            self._to[sent.receiver].append(sent)

    def of(self, step: Step) -> Iterator[Cause]:
        """The causes of a step's wait, the last one first; their sum is the wait, if all are known.

        Since the worker's last wait, others computed for some time, and messages were in transit in the rest. The
        worker has computed meanwhile: only the longer computation of others is a cause.
        """
        if step.waited_for is None or step.reason is None or step.end <= step.ready:
            return
        wait = step.end - step.ready
        if step.reason == QUEUE:
            yield Cause("message", wait, step.worker, step.waited_for)
            return
        own = [*self._since_a_wait(step)]
        causes = list(self._since(own[-1].begin, step))
        longer: defaultdict[str, float] = defaultdict(float)
        for cause in causes:
            if cause.what not in _IN_TRANSIT:
                longer[cause.what] += cause.seconds
        for each in own:
            for cause in each.causes(each.worker):
                longer[cause.what] -= cause.seconds
        more = max(0.0, sum(longer.values()))
        left = {"message": wait - more}
        for what, seconds in longer.items():
            left[what] = min(more, max(0.0, seconds))
            more -= left[what]
        for cause in causes:
            what = "message" if cause.what in _IN_TRANSIT else cause.what
            seconds = min(cause.seconds, left[what])
            left[what] -= seconds
            if seconds > 0:
                yield cause._replace(seconds=seconds)

    def _since_a_wait(self, step: Step) -> Iterator[Step]:
        """A step and those before it, back to the last one with a wait, or to the worker's start."""
        for each in self._back_through(step):
            if each is not step and (each.end > each.ready or each.kind == AWAY):
                return
            yield each

    def _since(self, begin: float, step: Step) -> Iterator[Cause]:
        """The causes that led to the end of a step's wait, back to a time."""
        time = step.end
        for cause in self._back_from(step):
            for part in self._parts(cause, time):
                seconds = min(part.seconds, time - begin)
                time -= part.seconds
                if seconds > 0:
                    yield part._replace(seconds=seconds)
                if time <= begin:
                    return

    def _parts(self, cause: Cause, time: float) -> Iterator[Cause]:
        """A cause until a time, its last part first: no message is in transit during an outage of one of its ends."""
        begin, left = time - cause.seconds, cause.seconds
        for since, until in reversed([*clipped(self._away_of(cause), begin, time)]):
            yield cause._replace(seconds=time - until)
            yield cause._replace(what="away", seconds=until - since)
            left, time = since - begin, since
        yield cause._replace(seconds=left)

    def _away_of(self, cause: Cause) -> Sequence[Interval]:
        """The outages of the ends of a message."""
        if cause.what != "message" or not self._away:
            return ()
        ends = {self._machine[cause.sender], self._machine[cause.receiver]}
        return union([interval for end in ends for interval in self._away.get(end, ())])

    def _back_from(self, step: Step) -> Iterator[Cause]:
        """The causes that led to the end of a step's wait, back to the run's start."""
        sent, time = self._ended_by(step), step.end
        for _ in range(_MAX_MESSAGES):
            computed, received = self._before(sent.sender, sent.since)
            if received is not None and (computed is None or received.arrival > computed.ready + SAME):
                yield Cause("message", time - received.arrival, sent.sender, sent.receiver)
                sent, time = received, received.arrival
                continue
            if computed is None:
                yield Cause("message", time - sent.since, sent.sender, sent.receiver)
                return
            yield Cause("message", time - computed.ready, sent.sender, sent.receiver)
            waited = None
            for each in self._back_through(computed):
                yield from each.causes(sent.receiver)
                time, waited = each.begin, self._step_before(each)
                if waited is not None and waited.reason is not None:
                    break
            if waited is None or waited.waited_for is None:
                return
            if waited.reason == QUEUE:
                yield Cause("message", time - waited.ready, waited.worker, waited.waited_for)
                sent, time = _Sent(time, waited.ready, waited.worker, waited.waited_for), waited.ready
            else:
                sent = self._ended_by(waited)

    def _back_through(self, step: Step) -> Iterator[Step]:
        """A step and those before it."""
        before: Step | None = step
        while before is not None:
            yield before
            before = self._step_before(before)

    def _step_before(self, step: Step) -> Step | None:
        place = bisect_right(self._ready[step.worker], step.begin + SAME) - 1
        found = self._steps[step.worker][place] if place >= 0 else None
        return found if found is not None and found.begin < step.begin else None

    def _ended_by(self, step: Step) -> _Sent:
        """The message that ended a step's wait."""
        assert step.waited_for is not None
        assert step.reason is not None
        peer = step.waited_for
        found = _last(self._on_link[peer, step.worker, step.reason], step.end)
        if found is not None and found.arrival > step.ready:
            return found
        if self._machine[peer] == self._machine[step.worker]:
            return _Sent(step.end, step.end, peer, step.worker)
        computed, _ = self._before(peer, step.end)
        return _Sent(step.end, computed.ready if computed else step.ready, peer, step.worker)

    def _before(self, participant: int, time: float) -> tuple[Step | None, _Sent | None]:
        """The last computation of its machine by a time, and the last message to it."""
        worker = self._machine[participant]
        place = bisect_right(self._ready.get(worker, ()), time + SAME) - 1
        return self._steps[worker][place] if place >= 0 else None, _last(self._to[participant], time)


def _last(sent: Sequence[_Sent], time: float) -> _Sent | None:
    """The last of messages, in order of arrival, that arrived by a time."""
    place = bisect_right(sent, time + SAME, key=lambda each: each.arrival) - 1
    return sent[place] if place >= 0 else None
