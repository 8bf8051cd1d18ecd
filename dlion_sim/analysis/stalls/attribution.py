"""Where each worker's time went, as one run's tables tell it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from dlion_sim.analysis.outages import within
from dlion_sim.analysis.stalls.steps import AWAY, QUEUE, Cause, Step, steps
from dlion_sim.analysis.stalls.waits import Causes
from dlion_sim.results import Run, clouds_of, participants

KINDS = ("compute", "prep", "fetch", "profile", "interconnect", "network", "straggler", "queue", "churn", "other")
"""What a worker's time goes to: computing; waiting for samples to be prepared, and to be read, its own or those of whom
it waits for; timing its machine; waiting for messages between machines of one micro-cloud, or of two; for somebody to
compute; for own messages to leave; being away, or waiting for somebody who is; anything else."""
LINKS = ("interconnect", "network", "queue")
"""Of these the waits for messages under way."""
_OF_MACHINES = {
    "prep": "samples to be prepared",
    "fetch": "samples to be read",
    "profile": "its machine to be timed",
    "churn": "machines that come and go",
}
_LITTLE = 0.01
"""Of a worker's time: less is not worth a word."""
_OF_STEPS = {"profile": "profile", AWAY: "churn"}
"""The kind of what a worker does in a step, but in iterations, where it computes."""
_WAITS = ("worker", "kind", "sender", "receiver", "seconds")


@dataclass(frozen=True)
class Stalls:
    """Where the time of a run's workers went, of all iterations that count."""

    run: Run
    seconds: pd.DataFrame
    """A row a worker and a column a kind of `KINDS` (s)."""
    iterations: Mapping[int, int]
    """That count, by worker."""
    waits: pd.DataFrame
    """A row a thing that a worker waited for: `worker`, `kind`, `sender`, `receiver`, `seconds`; the longest first."""

    @property
    def totals(self) -> pd.Series:
        """The seconds of each worker."""
        return self.seconds.sum(axis=1)

    @property
    def shares(self) -> pd.DataFrame:
        """As `seconds`, of each worker's time; rows sum to 1, or to 0 where no time counts."""
        totals = self.totals
        return self.seconds.div(totals.where(totals > 0, 1.0), axis=0)

    @cached_property
    def per_iteration(self) -> pd.Series:
        """The seconds of each kind that an iteration takes, as the mean over the workers that did one; see `KINDS`."""
        counts = pd.Series(self.iterations)
        did = counts[counts > 0]
        return self.seconds.loc[did.index].div(did, axis=0).mean() if len(did) else self.seconds.mean() * float("nan")

    @property
    def iteration_seconds(self) -> float:
        """What an iteration takes, as the mean over the workers."""
        return float(self.per_iteration.sum())

    @property
    def of_all(self) -> float:
        """What an iteration takes, as the time of all workers, also of those that were away, over all iterations."""
        return float(self.totals.sum()) / (sum(self.iterations.values()) or math.nan)


def stalls(run: Run, warm_up: int = 0) -> Stalls:
    """Where the time of each worker went, its first `warm_up` iterations left out.

    It then counts until the first worker has done its last one: what the others do without it is another thing. Who
    is away then does not end it, and who is away as the first one is warm counts from then on. Without a `warm_up` all
    of the run counts. Raises InputError where the run cannot be read.
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
    """When a worker's iterations begin to count; from the start on where it has done so many only when others end."""
    return ends[warm_up - 1] if warm_up and len(ends) >= warm_up and ends[warm_up - 1] < last else 0.0


def _between(own: Sequence[Step], begin: float, last: float) -> Iterator[Step]:
    """The steps that end between two times, and of being away what is between them."""
    for step in own:
        if step.kind == AWAY:
            for gone, back in within([(step.begin, step.end)], begin, last):
                yield step._replace(begin=gone, ready=back, end=back)
        elif begin < step.end <= last:
            yield step


def _computing(counted: Sequence[Step], begin: float) -> dict[str, float]:
    """The seconds of each kind in steps, but for their waits; what lies between two of them is of another kind."""
    row = dict.fromkeys(KINDS, 0.0)
    for step in counted:
        row["other"] += max(0.0, step.begin - begin)
        row["prep"] += step.prep
        row["fetch"] += step.fetch
        computed = max(0.0, step.ready - step.begin - step.prep - step.fetch)
        row[_OF_STEPS.get(step.kind, "compute")] += computed
        begin = step.end
    return row


def _kind(cause: Cause, step: Step, clouds: Sequence[str]) -> str:
    if cause.what != "message":
        return {"computing": "straggler", "away": "churn"}.get(cause.what, cause.what)
    if step.reason == QUEUE:
        return "queue"
    return "interconnect" if clouds[cause.sender] == clouds[cause.receiver] else "network"


def in_a_sentence(stalls: Stalls) -> str:
    """Which micro-cloud is held up most, for how much of its time, and mostly by what."""
    clouds = clouds_of(stalls.run.manifest)
    by_cloud = stalls.seconds.groupby([clouds[worker] for worker in stalls.seconds.index], sort=False).sum()
    lost = by_cloud.drop(columns="compute").sum(axis=1) / by_cloud.sum(axis=1).where(lambda total: total > 0, 1.0)
    cloud = str(lost.idxmax())
    name = cloud or "each worker"
    if lost[cloud] < _LITTLE:
        return f"no worker waits for more than {_LITTLE:.0%} of its time"
    told = f"{name} waits {lost[cloud]:.0%} of its time"
    causes = _causes(stalls, cloud)
    if causes.empty or causes.iloc[0] <= 0:
        return told
    longest = str(causes.index[0])
    share = causes.iloc[0] / by_cloud.loc[cloud].sum()
    return f"{told}, mostly for {longest}" + (f": {share:.0%}" if share < lost[cloud] - _LITTLE else "")


def _causes(stalls: Stalls, cloud: str) -> pd.Series:
    """What the workers of a micro-cloud waited for, in words, and for how many seconds; the longest first."""
    clouds, names = clouds_of(stalls.run.manifest), participants(stalls.run.manifest)
    own = [worker for worker in stalls.seconds.index if clouds[worker] == cloud]
    seconds: defaultdict[str, float] = defaultdict(float)
    for _, kind, sender, receiver, lasted in stalls.waits[stalls.waits["worker"].isin(own)].itertuples(index=False):
        if kind == "straggler":
            seconds[f"{names[sender]} to compute"] += lasted
        elif kind in _OF_MACHINES:
            continue
        elif clouds[sender] == clouds[receiver]:
            seconds[f"messages within {clouds[sender] or 'the cloud'}"] += lasted
        else:
            seconds[f"{clouds[sender]} -> {clouds[receiver]}"] += lasted
    for kind, words in _OF_MACHINES.items():
        seconds[words] = float(stalls.seconds.loc[own, kind].sum())
    return pd.Series(seconds).sort_values(ascending=False, kind="stable")
