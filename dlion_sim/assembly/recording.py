"""The recorder: writes a run's measurements into its folder, row by row, and sums them up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from dlion_sim.assembly.compute import Stall
from dlion_sim.assembly.totals import Totals
from dlion_sim.assembly.transfer import Transfer
from dlion_sim.learning import Score
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.protocol.events import Report, Unfinished
from dlion_sim.protocol.messages import Channel, Contribution
from dlion_sim.results import (
    ClassesRow,
    Ending,
    LinksRow,
    MetricsRow,
    PartsRow,
    Row,
    RunWriter,
    TransfersRow,
)


@dataclass(slots=True)
class LinkInterval:
    """What a directed link has carried in the present interval."""

    bytes: int = 0
    messages: int = 0
    gradients: int = 0
    n_percents: list[float] = field(default_factory=list)
    """The N of each Max-N message."""


_CHANNEL_NAMES = {channel: channel.name.lower() for channel in Channel}


class Recorder:
    """Records measurements of `workers`, in the order of the run's clock (seconds), as rows of `writer`.

    `wall` gives the wall time (s) of a time of the run's clock; by default they are the same. A checkpoint has its
    sums; `attach` sets writer and wall clock after resuming. `each_transfer`: every message gets a row.
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
        self._totals = Totals(workers)
        self._links: dict[tuple[int, int], LinkInterval] = {}
        self._stalls: dict[int, Stall] = {}
        """The wait for input of each worker's present computation."""

    def attach(self, writer: RunWriter, wall: Callable[[float], float]) -> None:
        self._writer = writer
        self._wall = wall

    @property
    def metric(self) -> Metric:
        return Metric.of(self._writer.manifest)

    @property
    def score(self) -> float | None:
        """The metric's mean over the workers at the last evaluation, if there was one."""
        return self._totals.score

    @property
    def iterations(self) -> Mapping[int, int]:
        return self._totals.iterations

    def iteration(self, worker: int, report: Report, now: float) -> None:
        self._add(worker, now, kind="iteration", **_fields(report), **self._stalled(worker, report.compute_seconds))

    def fed(self, worker: int, stall: Stall) -> None:
        """A worker's computation begins with a wait for its samples."""
        self._stalls[worker] = stall

    def profiled(self, worker: int, seconds: float, now: float) -> None:
        self._add(worker, now, **_fields(Unfinished("profile", 0, seconds)))

    def unfinished(self, worker: int, left: Unfinished | None, now: float) -> None:
        if left is not None:
            self._add(worker, now, **_fields(left), **self._stalled(worker, left.compute_seconds))

    def lost(self, worker: int, left: Unfinished | None, batch_size: int | None, now: float) -> None:
        if left is not None:
            columns = {
                **_fields(left),
                **({"kind": "cut", "batch_size": batch_size} if left.kind == "unfinished" else {}),
            }
            self._add(worker, now, **columns, **self._stalled(worker, left.compute_seconds))

    def evaluation(self, worker: int, score: Score, iteration: int, now: float) -> None:
        self._evaluated("evaluation", worker, score, iteration, now)
        for number, share, samples, accuracy in score.classes:
            self.append(ClassesRow(now, worker, number, share, samples, accuracy))

    def full_evaluation(self, worker: int, score: Score, iteration: int, now: float) -> None:
        """A worker's parameters at the end of the run were evaluated on all samples."""
        self._evaluated("full_evaluation", worker, score, iteration, now)

    def _evaluated(self, kind: str, worker: int, score: Score, iteration: int, now: float) -> None:
        columns = {"accuracy" if self.metric == ACCURACY else "metric": score.metric}
        self._add(worker, now, kind=kind, iteration=iteration, loss=score.loss, **columns)

    def arrivals(self, worker: int, score: Score, samples: int, now: float) -> None:
        """So many samples have arrived at a worker, and its parameters were tested on them."""
        columns = {"loss": score.loss, "accuracy": score.metric, "batch_size": samples}
        self._add(worker, now, kind="arrivals", iteration=self.iterations[worker], **columns)

    def _stalled(self, worker: int, computed: float) -> dict[str, float]:
        """The wait for samples within a worker's computation, which the end of the run may cut off."""
        if worker not in self._stalls:
            return {}
        stall = self._stalls.pop(worker)
        prep = min(stall.prep, computed)
        return {"prep_seconds": prep, "fetch_seconds": min(stall.fetch, computed - prep)}

    def _add(self, worker: int, now: float, **columns: Any) -> None:
        self.append(MetricsRow(now, self._wall(now), worker, **columns))

    def carried(self, transfer: Transfer, size: float) -> None:
        """So many bytes of a message have been carried until now."""
        more = transfer.count(size)
        if more:
            self._interval(transfer).bytes += more

    def sent(self, transfer: Transfer, now: float) -> None:
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
        """The run or a connection ends while a message is under way."""
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
            self.append(row)
            for variable, large, size, lost, seconds in loss.parts if loss else ():
                self.append(PartsRow(began, *link, body.kind, body.stage, variable, large, size, lost, seconds))

    def end_interval(self, now: float) -> None:
        for (sender, receiver), interval in sorted(self._links.items()):
            n_percent = fmean(interval.n_percents) if interval.n_percents else None
            self.append(
                LinksRow(now, sender, receiver, interval.bytes, interval.messages, interval.gradients, n_percent)
            )
        self._links.clear()

    def append(self, row: Row) -> None:
        """Add a row to the table of its class, and to the sums."""
        self._totals.add(row, self._writer.manifest)
        if self._each_transfer or not isinstance(row, TransfersRow | PartsRow):
            self._writer.append(row)

    def flush(self) -> None:
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
        """The summary of all rows; see `summarize` for its other fields.

        `messages` are their counts by outcome, in runs with availability.
        """
        return self._totals.summary(
            self._writer.manifest,
            ending,
            wall_seconds=self._wall(ending.seconds),
            evaluation_seconds=evaluation_seconds,
            target=target,
            late=late,
            messages=messages,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_writer", "_wall")}


def _fields(measured: Report | Unfinished) -> dict[str, Any]:
    """Its fields by name. Those of `dataclasses.asdict` are copies, which take many times longer."""
    return {name: getattr(measured, name) for name in measured.__slots__}
