"""Attribution of each worker's time to computing and kinds of stalls, from one run's tables."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from dlion_sim.analysis.outages import clipped
from dlion_sim.analysis.stalls.steps import AWAY, QUEUE, Cause, Step, steps
from dlion_sim.analysis.stalls.waits import Causes
from dlion_sim.results import Run, clouds_of, participants

KINDS = ("compute", "prep", "fetch", "profile", "interconnect", "network", "straggler", "queue", "churn", "other")
"""Computing; waiting for samples to be prepared, or read, by the worker or a peer; profiling the machine; waiting for
messages within a micro-cloud, or between two; for a peer's computation; for own messages to leave; outages, own or
of a peer; anything else."""
LINKS = ("interconnect", "network", "queue")
"""The kinds that are waits for messages in transit."""
_MACHINE_WORDS = {
    "prep": "samples to be prepared",
    "fetch": "samples to be read",
    "profile": "profiling",
    "churn": "outages",
}
_NEGLIGIBLE = 0.01
"""Smaller shares of a worker's time are not mentioned."""
_STEP_KINDS = {"profile": "profile", AWAY: "churn"}
"""The kind of a step's computation, unless it is an iteration."""
_WAITS = ("worker", "kind", "sender", "receiver", "seconds")


@dataclass(frozen=True)
class Stalls:
    """The time of a run's workers by kind, over the counted iterations."""

    run: Run
    seconds: pd.DataFrame
    """A row for each worker and a column for each of `KINDS` (s)."""
    iterations: Mapping[int, int]
    """The number of counted iterations, by worker."""
    waits: pd.DataFrame
    """A row for each cause of a worker's waits: `worker`, `kind`, `sender`, `receiver`, `seconds`; the longest
    first."""

    @property
    def totals(self) -> pd.Series:
        """The seconds of each worker."""
        return self.seconds.sum(axis=1)

    @property
    def shares(self) -> pd.DataFrame:
        """As `seconds`, as shares of each worker's time; rows sum to 1, or to 0 without counted time."""
        totals = self.totals
        return self.seconds.div(totals.where(totals > 0, 1.0), axis=0)

    @cached_property
    def per_iteration(self) -> pd.Series:
        """The seconds of each kind per iteration, the mean over the workers with iterations; see `KINDS`."""
        counts = pd.Series(self.iterations)
        did = counts[counts > 0]
        return self.seconds.loc[did.index].div(did, axis=0).mean() if len(did) else self.seconds.mean() * float("nan")

    @property
    def iteration_seconds(self) -> float:
        """The duration of an iteration, the mean over the workers."""
        return float(self.per_iteration.sum())

    @property
    def mean_iteration_seconds(self) -> float:
        """The time of all workers, outages included, over all iterations."""
        return float(self.totals.sum()) / (sum(self.iterations.values()) or math.nan)


def stalls(run: Run, warm_up: int = 0) -> Stalls:
    """The time of each worker by kind, without its first `warm_up` iterations.

    It counts until the first worker's last iteration, as the others continue without that worker; workers that are down
    then do not end it. A worker that is down when the first one has warmed up counts from then on. Without a `warm_up`
    all of the run counts. Raises InputError if the run cannot be read.
    """
    of_workers = steps(run)
    causes, clouds = Causes(run, of_workers), clouds_of(run.manifest)
    ends = {worker: [step.end for step in own if step.kind == "iteration"] for worker, own in of_workers.items()}
    there = [times[-1] for worker, times in ends.items() if times and of_workers[worker][-1].kind != AWAY]
    last = min(there, default=0.0) if warm_up else math.inf
    warm = min((times[warm_up - 1] for times in ends.values() if warm_up and len(times) >= warm_up), default=0.0)
    rows, counts = {}, {}
    waited: defaultdict[tuple[int, str, int, int], float] = defaultdict(float)
    for worker, own in of_workers.items():
        is_away = any(step.kind == AWAY and step.begin <= warm < step.end for step in own)
        begin = warm if is_away else _warm_at(ends[worker], warm_up, last)
        counted = [*_between(own, begin, last)]
        rows[worker] = row = _computing(counted, begin)
        for step in counted:
            known = 0.0
            for cause in causes.of(step):
                kind = _kind(cause, step, clouds)
                known += cause.seconds
                row[kind] += cause.seconds
                waited[worker, kind, cause.sender, cause.receiver] += cause.seconds
            row["other"] += max(0.0, step.end - step.ready - known)
        counts[worker] = sum(step.kind == "iteration" for step in counted)
    waits = pd.DataFrame([(*what, each) for what, each in waited.items() if each > 0], columns=[*_WAITS])
    return Stalls(
        run,
        pd.DataFrame.from_dict(rows, orient="index", columns=[*KINDS]),
        counts,
        waits.sort_values("seconds", ascending=False, kind="stable", ignore_index=True),
    )


def _warm_at(ends: Sequence[float], warm_up: int, last: float) -> float:
    """When a worker's iterations begin to count; 0 if its warm-up ends after `last`."""
    return ends[warm_up - 1] if warm_up and len(ends) >= warm_up and ends[warm_up - 1] < last else 0.0


def _between(own: Sequence[Step], begin: float, last: float) -> Iterator[Step]:
    """The steps that end between two times, and the parts of outages between them."""
    for step in own:
        if step.kind == AWAY:
            for since, until in clipped([(step.begin, step.end)], begin, last):
                yield step._replace(begin=since, ready=until, end=until)
        elif begin < step.end <= last:
            yield step


def _computing(counted: Sequence[Step], begin: float) -> dict[str, float]:
    """The seconds of each kind in steps, without their waits; gaps between steps are "other"."""
    row = dict.fromkeys(KINDS, 0.0)
    for step in counted:
        row["other"] += max(0.0, step.begin - begin)
        row["prep"] += step.prep
        row["fetch"] += step.fetch
        computed = max(0.0, step.ready - step.begin - step.prep - step.fetch)
        row[_STEP_KINDS.get(step.kind, "compute")] += computed
        begin = step.end
    return row


def _kind(cause: Cause, step: Step, clouds: Sequence[str]) -> str:
    if cause.what != "message":
        return {"computing": "straggler", "away": "churn"}.get(cause.what, cause.what)
    if step.reason == QUEUE:
        return "queue"
    return "interconnect" if clouds[cause.sender] == clouds[cause.receiver] else "network"


def summary_sentence(stalls: Stalls) -> str:
    """A sentence: which micro-cloud waits most, for which share of its time, and mainly for what."""
    clouds = clouds_of(stalls.run.manifest)
    by_cloud = stalls.seconds.groupby([clouds[worker] for worker in stalls.seconds.index], sort=False).sum()
    # Where a server samples the workers, the others rest.
    no_waits = ["compute", "other"] if stalls.run.evaluates_server else ["compute"]
    lost = by_cloud.drop(columns=no_waits).sum(axis=1) / by_cloud.sum(axis=1).where(lambda total: total > 0, 1.0)
    cloud = str(lost.idxmax())
    name = cloud or "each worker"
    if lost[cloud] < _NEGLIGIBLE:
        return f"no worker waits for more than {_NEGLIGIBLE:.0%} of its time"
    sentence = f"{name} waits {lost[cloud]:.0%} of its time"
    causes = _causes(stalls, cloud)
    if causes.empty or causes.iloc[0] <= 0:
        return sentence
    longest = str(causes.index[0])
    share = causes.iloc[0] / by_cloud.loc[cloud].sum()
    return f"{sentence}, mostly for {longest}" + (f": {share:.0%}" if share < lost[cloud] - _NEGLIGIBLE else "")


def _causes(stalls: Stalls, cloud: str) -> pd.Series:
    """What the workers of a micro-cloud waited for, as text, and the seconds; the longest first."""
    clouds, names = clouds_of(stalls.run.manifest), participants(stalls.run.manifest)
    own = [worker for worker in stalls.seconds.index if clouds[worker] == cloud]
    seconds: defaultdict[str, float] = defaultdict(float)
    for _, kind, sender, receiver, lasted in stalls.waits[stalls.waits["worker"].isin(own)].itertuples(index=False):
        if kind == "straggler":
            seconds[f"{names[sender]} to compute"] += lasted
        elif kind in _MACHINE_WORDS:
            continue
        elif clouds[sender] == clouds[receiver]:
            seconds[f"messages within {clouds[sender] or 'the cloud'}"] += lasted
        else:
            seconds[f"{clouds[sender]} -> {clouds[receiver]}"] += lasted
    for kind, words in _MACHINE_WORDS.items():
        seconds[words] = float(stalls.seconds.loc[own, kind].sum())
    return pd.Series(seconds).sort_values(ascending=False, kind="stable")
