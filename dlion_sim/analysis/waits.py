"""What each wait was for: read backwards from its end, over the messages and computations that led to it."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from dlion_sim.analysis.traffic import modelled_scenario
from dlion_sim.results import TESTS, Run, participants
from dlion_sim.scenario import Lv08, Scenario
from dlion_sim.scenario.topology import ParameterServers, ServerHost

_SAME = 1e-7
"""Times (s) that differ by less are the same: they are sums."""
_MOST_MESSAGES = 100_000
"""Back from a wait's end; a ring of tens of workers and hundreds of buckets has as many in an iteration."""
QUEUE = "queue"
"""The reason of a wait for an own message to leave."""
_OF_STEPS = [
    *("worker", "kind", "virtual_time", "compute_seconds", "wait_seconds", "prep_seconds", "fetch_seconds"),
    *("waited_for", "wait_reason"),
]


class Cause(NamedTuple):
    """What a wait was for, and for how long (s).

    That is a message on its way from `sender` to `receiver`, or the computation that it is the outcome of.
    """

    what: Literal["message", "computing"]
    seconds: float
    sender: int
    receiver: int


class Step(NamedTuple):
    """A row of a worker: it computes from `begin` to `ready`, and waits from then to `end` (s)."""

    worker: int
    kind: str
    """As in the metrics: "iteration", "profile", or "unfinished" for what the run's end cut off."""
    begin: float
    ready: float
    end: float
    prep: float
    """Of its computation, the seconds in which samples had still to be prepared."""
    fetch: float
    """And in which they had still to be read."""
    waited_for: int | None
    reason: str | None


class _Sent(NamedTuple):
    """A message that was there at `arrival`, and since when its sender's queue was busy (s)."""

    arrival: float
    since: float
    sender: int
    receiver: int


def steps(run: Run) -> dict[int, list[Step]]:
    """What each worker did, in order. Raises InputError where the run cannot be read."""
    metrics = run.metrics()
    rows = metrics[~metrics["kind"].isin(TESTS)].sort_values("virtual_time", kind="stable")
    rows = rows.fillna({"prep_seconds": 0.0, "fetch_seconds": 0.0, "wait_seconds": 0.0, "compute_seconds": 0.0})
    found: dict[int, list[Step]] = {worker: [] for worker in range(len(run.manifest["workers"]))}
    for worker, kind, end, computed, waited, *fed, peer, reason in rows[_OF_STEPS].itertuples(index=False):
        ready = end - waited
        cause = (int(peer), str(reason)) if peer == peer and isinstance(reason, str) else (None, None)
        found[worker].append(Step(worker, str(kind), ready - computed, ready, end, *fed, *cause))
    return found


class Causes:
    """Tells what the waits of a run were for.

    A wait ends with a message, which was under way since its sender's queue for it became busy. Before that the sender
    computed, or heard from somebody else, and so on, back to when the wait began. A message of which there is no record
    is taken to be under way since its sender's last computation ended.
    """

    def __init__(self, run: Run, of_workers: Mapping[int, Sequence[Step]]) -> None:
        self._steps = of_workers
        self._ready = {worker: [step.ready for step in own] for worker, own in of_workers.items()}
        scenario = modelled_scenario(run)
        self._machine = _machines(scenario, len(of_workers), len(participants(run.manifest)))
        self._on_link: dict[tuple[int, int, str], list[_Sent]] = defaultdict(list)
        self._to: dict[int, list[_Sent]] = defaultdict(list)
        for kind, sent in _messages(run, scenario):
            self._on_link[sent.sender, sent.receiver, kind].append(sent)
            self._to[sent.receiver].append(sent)

    def of(self, step: Step) -> Iterator[Cause]:
        """The causes of a step's wait, the last one first; together they take as long, where all are known.

        On the way back to the step's beginning, somebody computes for a while, and messages are under way in the rest.
        The worker has computed meanwhile itself: only what others computed longer than that has held it up.
        """
        if step.waited_for is None or step.reason is None or step.end <= step.ready:
            return
        wait = step.end - step.ready
        if step.reason == QUEUE:
            yield Cause("message", wait, step.worker, step.waited_for)
            return
        way = list(self._since(step.begin, step))
        computing = sum(cause.seconds for cause in way if cause.what == "computing")
        left = {"computing": max(0.0, computing - (step.ready - step.begin))}
        left["message"] = wait - left["computing"]
        for cause in way:
            seconds = min(cause.seconds, left[cause.what])
            left[cause.what] -= seconds
            if seconds > 0:
                yield cause._replace(seconds=seconds)

    def _since(self, begin: float, step: Step) -> Iterator[Cause]:
        """What led to the end of a step's wait, back to a time."""
        time = step.end
        for cause in self._back_from(step):
            seconds = min(cause.seconds, time - begin)
            time -= cause.seconds
            if seconds > 0:
                yield cause._replace(seconds=seconds)
            if time <= begin:
                return

    def _back_from(self, step: Step) -> Iterator[Cause]:
        """What led to the end of a step's wait, back to the run's start."""
        sent, time = self._ended_by(step), step.end
        for _ in range(_MOST_MESSAGES):
            computed, came = self._before(sent.sender, sent.since)
            if came is not None and (computed is None or came.arrival > computed.ready + _SAME):
                yield Cause("message", time - came.arrival, sent.sender, sent.receiver)
                sent, time = came, came.arrival
                continue
            if computed is None:
                yield Cause("message", time - sent.since, sent.sender, sent.receiver)
                return
            yield Cause("message", time - computed.ready, sent.sender, sent.receiver)
            waited = None
            for each in self._back_through(computed):
                yield Cause("computing", each.ready - each.begin, each.worker, sent.receiver)
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
        place = bisect_right(self._ready[step.worker], step.begin + _SAME) - 1
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
        """What its machine had last computed by a time, and the message that had last come to it."""
        worker = self._machine[participant]
        place = bisect_right(self._ready.get(worker, ()), time + _SAME) - 1
        return self._steps[worker][place] if place >= 0 else None, _last(self._to[participant], time)


def _last(sent: Sequence[_Sent], time: float) -> _Sent | None:
    """Of messages in the order of their arrival the last that was there by then."""
    place = bisect_right(sent, time + _SAME, key=lambda each: each.arrival) - 1
    return sent[place] if place >= 0 else None


def _messages(run: Run, scenario: Scenario | None) -> Iterator[tuple[str, _Sent]]:
    """The kind of each message that arrived, and what there is to know of it, in the order of arrival."""
    sent = run.transfers().sort_values(["begin", "end"], kind="stable")
    sent = sent[sent["end"].notna()]
    queue = sent.groupby(["sender", "receiver", "channel"], observed=True)
    is_idle = sent["begin"] > queue["end"].shift() + _SAME
    busy_period = is_idle.groupby([sent["sender"], sent["receiver"], sent["channel"]], observed=True).cumsum()
    since = sent.groupby(["sender", "receiver", "channel", busy_period.rename("period")], observed=True)["begin"]
    pairs = [*zip(sent["sender"].tolist(), sent["receiver"].tolist(), strict=True)]
    latencies = _latencies(scenario, {*pairs})
    # Packets that waited in queues, or were sent again, are there later than a latency after the last byte left.
    arrivals = sent["delivered"].fillna(sent["end"] + [latencies[pair] for pair in pairs])
    told = sent.assign(since=since.transform("min"), arrival=arrivals).sort_values("arrival", kind="stable")
    for kind, *columns in told[["kind", "arrival", "since", "sender", "receiver"]].itertuples(index=False):
        yield str(kind), _Sent(*columns)


def _latencies(scenario: Scenario | None, pairs: set[tuple[int, int]]) -> dict[tuple[int, int], float]:
    """The seconds from the last byte's leaving to the arrival, of each link as far as it is known."""
    if scenario is None or isinstance(scenario.network.tcp, Lv08):  # There they pass before the first byte.
        return dict.fromkeys(pairs, 0.0)
    clouds = [worker.cloud for worker in scenario.cluster.workers]
    clouds += [host.cloud if isinstance(host, ServerHost) else clouds[host] for host in _hosts(scenario)]
    lans = {cloud.name: cloud.lan.rtt for cloud in scenario.cluster.clouds}

    def latency(a: str, b: str) -> float:
        return (lans[a] if a == b else scenario.cluster.wan_path(a, b)[1]) / 2

    last = len(clouds) - 1
    return {pair: latency(*(clouds[each] for each in pair)) if max(pair) <= last else 0.0 for pair in pairs}


def _machines(scenario: Scenario | None, workers: int, everybody: int) -> list[int]:
    """The number of the machine of each worker and server: a worker's own, or one of nobody else."""
    hosts = _hosts(scenario) if scenario else ()
    of_servers = [host if isinstance(host, int) else workers + place for place, host in enumerate(hosts)]
    own = [*range(workers), *of_servers]
    return [*own, *range(len(own), everybody)]


def _hosts(scenario: Scenario) -> Sequence[int | ServerHost]:
    topology = scenario.system.topology
    return topology.hosts if isinstance(topology, ParameterServers) else ()
