"""What a run measures, row by row into its folder and in sums for its summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np

from dlion_sim.assembly.attendance import Attendance
from dlion_sim.assembly.feeding import Stall
from dlion_sim.assembly.losses import Losses
from dlion_sim.assembly.transfer import Transfer
from dlion_sim.learning import Score
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.protocol.events import Report, Unfinished
from dlion_sim.protocol.messages import Channel, Contribution
from dlion_sim.results import (
    SPENT,
    Ending,
    LinksRow,
    MembershipRow,
    MetricsRow,
    PartsRow,
    QueuesRow,
    RunWriter,
    Tariff,
    TransfersRow,
    cost_of,
    summarize,
    system_label,
)


@dataclass(slots=True)
class LinkInterval:
    """What a directed link has carried since the last row about it."""

    bytes: int = 0
    messages: int = 0
    gradients: int = 0
    n_percents: list[float] = field(default_factory=list)
    """N of the Max-N messages."""


_CHANNEL_NAMES = {channel: channel.name.lower() for channel in Channel}
_SAME_SECONDS = 1e-6
"""Times that differ by less are the same: they are sums."""


class Recorder:
    """Takes in what happens to `workers`, in seconds of the run's clock and in order; `writer` gets it as rows.

    `wall` tells the wall time (s) of what happens at a time; without it, the run's clock is the wall's. Pickled, it
    keeps its sums; `attach` gives it the writer and the wall's clock to go on with. `each_transfer` says whether every
    message gets a row.
    """

    def __init__(
        self,
        writer: RunWriter,
        workers: Iterable[int],
        wall: Callable[[float], float] = lambda now: now,
        *,
        each_transfer: bool = True,
    ) -> None:
        self.attach(writer, wall)
        self._each_transfer = each_transfer
        self._links: dict[tuple[int, int], LinkInterval] = {}
        self._samples = 0
        self._bytes_sent = 0
        self._losses = Losses()
        self._between_clouds: dict[tuple[str, str], int] = {}
        """Bytes from one to another, where they have a price."""
        self._last_losses: dict[int, float] = {}
        self._evaluations: dict[float, dict[int, float]] = {}
        """The task's metric by time and worker."""
        self.iterations = dict.fromkeys(workers, 0)
        """That each worker has done."""
        self._ends = dict.fromkeys(self.iterations, 0.0)
        """When each worker has ended its last one."""
        self._stalls: dict[int, Stall] = {}
        """That the computation of a worker's iteration began with, where machines have an input."""
        self._exchanges = dict.fromkeys(self.iterations, 0)
        """Iterations of each worker that took in something from a peer."""
        self._spent = {worker: dict.fromkeys(SPENT, 0.0) for worker in self.iterations}
        """Seconds of each worker."""
        self._attendance = Attendance(self.iterations)

    def attach(self, writer: RunWriter, wall: Callable[[float], float]) -> None:
        """Write and time by these from now on."""
        self._writer = writer
        self._wall = wall

    @property
    def metric(self) -> Metric:
        """What evaluations are by."""
        return Metric.of(self._writer.manifest)

    @property
    def score(self) -> float | None:
        """The metric's mean over the workers at the last evaluation, if there was one."""
        last = next(reversed(self._evaluations.values()), None)
        return float(np.mean(list(last.values()))) if last else None

    @property
    def _tariff(self) -> Tariff | None:
        """The run's prices, if it has any. What a live node writes is a part of a run, whose cost is not its own."""
        about = self._writer.manifest
        return None if "rank" in about else about.get("tariff")

    def iteration(self, worker: int, report: Report, now: float) -> None:
        """A worker has ended an iteration."""
        self._add(worker, now, kind="iteration", **_fields(report), **self._stalled(worker, report.compute_seconds))

    def fed(self, worker: int, stall: Stall) -> None:
        """A worker's computation begins, and waits so long for its samples."""
        self._stalls[worker] = stall

    def profiled(self, worker: int, seconds: float, now: float) -> None:
        """A worker has timed its machine, which took so long."""
        self._add(worker, now, **_fields(Unfinished("profile", 0, seconds)))

    def unfinished(self, worker: int, left: Unfinished | None, now: float) -> None:
        """The run ends, and this is what a worker was at."""
        if left is not None:
            self._add(worker, now, **_fields(left), **self._stalled(worker, left.compute_seconds))

    def lost(self, worker: int, left: Unfinished | None, batch_size: int | None, now: float) -> None:
        """A worker is gone, and this is what it was at."""
        if left is not None:
            told = {**_fields(left), **({"kind": "cut", "batch_size": batch_size} if left.kind == "unfinished" else {})}
            self._add(worker, now, **told, **self._stalled(worker, left.compute_seconds))

    def evaluation(self, worker: int, score: Score, iteration: int, now: float) -> None:
        """What a worker's parameters were then, after so many iterations, was evaluated."""
        told = {"accuracy" if self.metric == ACCURACY else "metric": score.metric}
        self._add(worker, now, kind="evaluation", iteration=iteration, loss=score.loss, **told)

    def _stalled(self, worker: int, computed: float) -> dict[str, float]:
        """What of the seconds that a worker has computed it has waited for samples: the end may cut that off."""
        if worker not in self._stalls:
            return {}
        stall = self._stalls.pop(worker)
        prep = min(stall.prep, computed)
        return {"prep_seconds": prep, "fetch_seconds": min(stall.fetch, computed - prep)}

    def _add(self, worker: int, now: float, **told: Any) -> None:
        """A row of the metrics; what is told of a worker has the columns' names."""
        self.metrics(MetricsRow(now, self._wall(now), worker, **told))

    def carried(self, transfer: Transfer, size: float) -> None:
        """So many bytes of a message have been carried by now."""
        more = transfer.count(size)
        if more:
            self._interval(transfer).bytes += more

    def sent(self, transfer: Transfer, now: float) -> None:
        """The last byte of a message has left its sender."""
        message = transfer.message
        interval = self._interval(transfer)
        interval.bytes += transfer.count(transfer.size - (transfer.loss.saved if transfer.loss else 0))
        interval.messages += 1
        if isinstance(message.body, Contribution):
            interval.gradients += 1
            if message.body.n_percent is not None:
                interval.n_percents.append(message.body.n_percent)
        self._transferred(transfer, now)

    def cut_off(self, transfer: Transfer) -> None:
        """The run ends while a message is under way."""
        self._transferred(transfer, None)

    def _interval(self, transfer: Transfer) -> LinkInterval:
        return self._links.setdefault((transfer.sender, transfer.receiver), LinkInterval())

    def _transferred(self, transfer: Transfer, end: float | None) -> None:
        began, loss = transfer.began, transfer.loss
        if self._each_transfer or loss:
            body, link = transfer.message.body, (transfer.sender, transfer.receiver)
            row = TransfersRow(began, end, *link, _CHANNEL_NAMES[body.channel], body.kind, transfer.counted)
            if loss:
                row = row._replace(lost_bytes=loss.lost, resent_bytes=loss.resent, saved_bytes=loss.saved)
                row = row._replace(delivered=None if loss.seconds is None else began + loss.seconds)
            self.transfers(row)
            for variable, large, size, lost, seconds in loss.parts if loss else ():
                self.parts(PartsRow(began, *link, body.kind, body.stage, variable, large, size, lost, seconds))

    def end_interval(self, now: float) -> None:
        """An interval of the links ends."""
        for (sender, receiver), interval in sorted(self._links.items()):
            n_percent = fmean(interval.n_percents) if interval.n_percents else None
            self.links(
                LinksRow(now, sender, receiver, interval.bytes, interval.messages, interval.gradients, n_percent)
            )
        self._links.clear()

    def metrics(self, row: MetricsRow) -> None:
        """Take in a row of the metrics."""
        if row.kind != "evaluation":
            self._check_times(row)
            self._spend(row)
        self._writer.metrics(row)
        if row.score is not None:
            self._evaluations.setdefault(row.virtual_time, {})[row.worker] = row.score
        elif row.kind == "iteration" and row.loss is not None:
            self.iterations[row.worker] = row.iteration
            self._last_losses[row.worker] = row.loss
            self._samples += row.batch_size or 0
            self._exchanges[row.worker] += bool(row.applied or row.merged)
        elif row.kind == "cut":
            self._attendance.cut(row.batch_size or 0, row.compute_seconds or 0.0)

    def _check_times(self, row: MetricsRow) -> None:
        """A worker computes and waits one after the other, within the time since its last iteration ended."""
        computed, waited = row.compute_seconds or 0.0, row.wait_seconds or 0.0
        elapsed = row.virtual_time - self._ends[row.worker]
        assert waited >= 0, f"worker {row.worker} cannot have waited for {waited} s"
        assert computed + waited <= elapsed + _SAME_SECONDS, (
            f"worker {row.worker} cannot have computed for {computed} s and waited for {waited} s within {elapsed} s"
        )
        self._ends[row.worker] = row.virtual_time

    def _spend(self, row: MetricsRow) -> None:
        spent, fed = self._spent[row.worker], (row.prep_seconds or 0.0) + (row.fetch_seconds or 0.0)
        spent["profile" if row.kind == "profile" else "compute"] += max(0.0, (row.compute_seconds or 0.0) - fed)
        spent["input"] += fed
        spent["wait"] += row.wait_seconds or 0.0

    def links(self, row: LinksRow) -> None:
        """Take in a row of the links."""
        self._writer.links(row)
        self._bytes_sent += row.bytes
        if self._tariff is not None:
            clouds = self._writer.manifest["clouds"]
            path = clouds[row.sender], clouds[row.receiver]
            if path[0] != path[1]:
                self._between_clouds[path] = self._between_clouds.get(path, 0) + row.bytes

    def transfers(self, row: TransfersRow) -> None:
        """Take in a row of the transfers."""
        self._losses.add(row)
        if self._each_transfer:
            self._writer.transfers(row)

    def parts(self, row: PartsRow) -> None:
        """Take in a row of the parts of messages."""
        if self._each_transfer:
            self._writer.parts(row)

    def queues(self, rows: Iterable[QueuesRow]) -> None:
        """Take in rows of the queues, as an interval ends."""
        for row in rows:
            self._writer.queues(row)

    def membership(self, row: MembershipRow) -> None:
        """Take in a row of the membership."""
        self._attendance.add(row, self._samples)
        if row.iteration is not None and row.participant in self.iterations:
            self.iterations[row.participant] = row.iteration
        self._writer.membership(row)

    def flush(self) -> None:
        """Bring every row so far to the disk, where it outlives this process."""
        self._writer.flush()

    def summary(
        self,
        ending: Ending,
        *,
        evaluation_seconds: float = 0.0,
        target: float | None = None,
        late: Mapping[str, Any] | None = None,
        messages: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        """The summary of all that was taken in; see `summarize` for what else it tells.

        `messages` are counts of what became of them, where anybody may have come or gone.
        """
        about = self._writer.manifest
        availability = self._attendance.told(self._samples, ending.seconds)
        up = availability["up"] if availability else ()
        return summarize(
            scenario=about["scenario"],
            system=about["system"],
            system_label=system_label(about),
            seed=about["seed"],
            ending=ending,
            wall_seconds=self._wall(ending.seconds),
            evaluation_seconds=evaluation_seconds,
            samples=self._samples,
            bytes_sent=self._bytes_sent,
            iterations=self.iterations,
            exchanges=self._exchanges,
            last_losses=self._last_losses,
            spent=self._spent,
            metric=self.metric,
            evaluations=list(self._evaluations.items()),
            evaluated_on=about.get("evaluated_on", "test"),
            target=target,
            late=late,
            cost_as=about.get("cost_as"),
            transport=self._losses.told,
            availability=availability and {**availability, **({"messages": messages} if messages else {})},
            cost=cost_of(self._tariff, ending.seconds, self._between_clouds, up) if self._tariff else None,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_writer", "_wall")}


def _fields(told: Report | Unfinished) -> dict[str, Any]:
    """Its fields by name. Those of `dataclasses.asdict` are copies, which take many times longer."""
    return {name: getattr(told, name) for name in told.__slots__}
