"""A run as steps of workers (computing, waiting, away) and messages between participants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import pandas as pd

from dlion_sim.analysis.outages import Interval, clipped, training_outages
from dlion_sim.results import TESTS, Run
from dlion_sim.scenario import Lv08, Scenario
from dlion_sim.scenario.system import ServerHost, hosts_of, machines_of

SAME = 1e-7
"""Times (s) that differ by less are equal: they are sums."""
_QUEUE_KEYS = ["sender", "receiver", "channel"]
QUEUE = "queue"
"""The reason of a wait for an own message to leave."""
AWAY = "away"
"""The kind of a step in which a worker was leaving, down, or without state yet."""
_NUMBERS = ("compute_seconds", "wait_seconds", "prep_seconds", "fetch_seconds", "batch_size")
"""Missing values are 0."""
_COLUMNS = ["worker", "kind", "virtual_time", *_NUMBERS, "waited_for", "wait_reason"]


class Cause(NamedTuple):
    """A cause of a wait, and its seconds.

    That is a message in transit from `sender` to `receiver`, or an outage of one of them; or the sender's work before:
    computing, or waiting for its samples to be prepared or read.
    """

    what: Literal["message", "away", "computing", "prep", "fetch"]
    seconds: float
    sender: int
    receiver: int


class Step(NamedTuple):
    """A row of a worker: it computes from `begin` to `ready`, and waits from then to `end` (s)."""

    worker: int
    kind: str
    """As in the metrics: "iteration", "profile", or "unfinished" and "cut" if the run's or the worker's end cut it
    off; or `AWAY`, from `begin` to `end`."""
    begin: float
    ready: float
    end: float
    prep: float
    """Seconds of the computation in which samples had still to be prepared."""
    fetch: float
    """Seconds in which they had still to be read."""
    samples: int
    """The batch size."""
    waited_for: int | None
    reason: str | None

    def causes(self, receiver: int) -> Iterator[Cause]:
        """The worker's activities until it had computed, the last one first, as causes of the wait of `receiver`."""
        what: Literal["away", "computing"] = "away" if self.kind == AWAY else "computing"
        yield Cause(what, self.ready - self.begin - self.prep - self.fetch, self.worker, receiver)
        yield Cause("fetch", self.fetch, self.worker, receiver)
        yield Cause("prep", self.prep, self.worker, receiver)


def steps(run: Run) -> dict[int, list[Step]]:
    """The steps of each worker in order, outages included. Raises InputError if the run cannot be read."""
    metrics = run.metrics()
    rows = metrics[~metrics["kind"].isin(TESTS)].sort_values("virtual_time", kind="stable")
    rows = rows.fillna(dict.fromkeys(_NUMBERS, 0))
    found: dict[int, list[Step]] = {worker: [] for worker in range(len(run.manifest["workers"]))}
    values = rows[_COLUMNS].itertuples(index=False)
    for worker, kind, end, computed, waited, prep, fetch, samples, peer, reason in values:
        ready = end - waited
        cause = (int(peer), str(reason)) if peer == peer and isinstance(reason, str) else (None, None)
        found[worker].append(Step(worker, str(kind), ready - computed, ready, end, prep, fetch, int(samples), *cause))
    end = float(rows["virtual_time"].max())
    for worker, outages in training_outages(run).items():
        if worker in found:
            found[worker] = [*_with_outages(worker, found[worker], outages, end)]
    return found


def _with_outages(worker: int, own: Sequence[Step], outages: Sequence[Interval], end: float) -> Iterator[Step]:
    """A worker's steps, and one for each outage between them, or until the run's end.

    The step of an outage begins at the end of the previous step, as a worker that leaves in order stops then.
    """
    before = 0.0
    for step in (*own, None):
        for since, until in clipped(outages, before, step.begin if step else end):
            if until - since > SAME:
                yield Step(worker, AWAY, before, until, until, 0.0, 0.0, 0, None, None)
                before = until
        if step:
            yield step
            before = step.end


def messages(run: Run, scenario: Scenario | None) -> pd.DataFrame:
    """The messages that arrived, in that order: columns as in the transfers, `arrival`, and `since` (s).

    The latter is the begin of the busy period of the sender's queue. `scenario` is that of the run's links, if known.
    """
    sent = run.transfers().sort_values(["begin", "end"], kind="stable")
    sent = sent[sent["end"].notna()]
    is_idle = sent["begin"] > sent.groupby(_QUEUE_KEYS, observed=True)["end"].shift() + SAME
    queue = [sent[column] for column in _QUEUE_KEYS]
    busy_period = is_idle.groupby(queue, observed=True).cumsum()
    since = sent.groupby([*_QUEUE_KEYS, busy_period.rename("period")], observed=True)["begin"]
    pairs = [*zip(sent["sender"].tolist(), sent["receiver"].tolist(), strict=True)]
    latencies = _latencies(scenario, {*pairs})
    # Packets that were queued or retransmitted arrive later than one latency after the last byte's departure.
    arrivals = sent["delivered"].fillna(sent["end"] + [latencies[pair] for pair in pairs])
    return sent.assign(since=since.transform("min"), arrival=arrivals).sort_values("arrival", kind="stable")


def _latencies(scenario: Scenario | None, pairs: set[tuple[int, int]]) -> dict[tuple[int, int], float]:
    """The seconds from the last byte's departure to its arrival for each (sender, receiver), 0 if unknown."""
    if scenario is None or isinstance(scenario.network.tcp, Lv08):  # Its latency passes before the first byte.
        return dict.fromkeys(pairs, 0.0)
    clouds = [worker.cloud for worker in scenario.cluster.workers]
    clouds += [
        host.cloud if isinstance(host, ServerHost) else clouds[host] for host in hosts_of(scenario.system.topology)
    ]
    lans = {cloud.name: cloud.lan.rtt for cloud in scenario.cluster.clouds}

    def latency(a: str, b: str) -> float:
        return (lans[a] if a == b else scenario.cluster.wan_path(a, b)[1]) / 2

    last = len(clouds) - 1
    return {pair: latency(*(clouds[each] for each in pair)) if max(pair) <= last else 0.0 for pair in pairs}


def machines(scenario: Scenario | None, workers: int, participants: int) -> list[int]:
    """The number of the machine of each worker and server; a server may share a worker's."""
    known = machines_of(workers, hosts_of(scenario.system.topology) if scenario else ())
    return [*known, *range(len(known), participants)]
