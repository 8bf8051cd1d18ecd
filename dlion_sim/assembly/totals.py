"""What a run's rows come to, in sums for its summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dlion_sim.assembly.availability_totals import AvailabilityTotals
from dlion_sim.assembly.packet_losses import PacketLosses
from dlion_sim.assembly.stream_totals import Streamed
from dlion_sim.metric import Metric
from dlion_sim.results import (
    SPENT,
    TESTS,
    ClassesRow,
    Ending,
    LinksRow,
    MembershipRow,
    MetricsRow,
    Tariff,
    TransfersRow,
    cost_of,
    summarize,
    system_label,
    wan_path,
)

_SAME_SECONDS = 1e-6
"""Times that differ by less are the same: they are sums."""


class Totals:
    """The sums over rows, which come in the order of time, of a run of these `workers`."""

    def __init__(self, workers: Iterable[int]) -> None:
        self.iterations = dict.fromkeys(workers, 0)
        """Where each worker is: the number of its last one, or of its sponsor's where it has joined since."""
        self._done = dict.fromkeys(self.iterations, 0)
        """How many each worker has done."""
        self._samples = 0
        self._bytes_sent = 0
        self._losses = PacketLosses()
        self._streamed = Streamed()
        self._between_clouds: dict[tuple[str, str], int] = {}
        """Bytes from one to another."""
        self._training_losses: dict[int, tuple[float, float]] = {}
        self._evaluations: dict[float, dict[int, float]] = {}
        """The task's metric by time and worker."""
        self._full_evaluation: dict[int, float] = {}
        """The task's metric by worker, on all samples at the run's end."""
        self._ends = dict.fromkeys(self.iterations, 0.0)
        """When each worker has ended its last one."""
        self._exchanges = dict.fromkeys(self.iterations, 0)
        """Iterations of each worker that took in something from a peer."""
        self._spent = {worker: dict.fromkeys(SPENT, 0.0) for worker in self.iterations}
        """Seconds of each worker."""
        self._attendance = AvailabilityTotals(self.iterations)

    @property
    def score(self) -> float | None:
        """The metric's mean over the workers at the last evaluation, if there was one."""
        last = next(reversed(self._evaluations.values()), None)
        return float(np.mean(list(last.values()))) if last else None

    def metrics(self, row: MetricsRow) -> None:
        """Take in a row of the metrics. Raises AssertionError for times that cannot be."""
        if row.kind not in TESTS:
            self._check_times(row)
            self._spend(row)
        if row.kind == "arrivals":
            self._streamed.arrivals(row)
        elif row.kind == "full_evaluation" and row.score is not None:
            self._full_evaluation[row.worker] = row.score
        elif row.score is not None:
            self._evaluations.setdefault(row.virtual_time, {})[row.worker] = row.score
        elif row.kind == "iteration" and row.loss is not None:
            self.iterations[row.worker] = row.iteration
            self._done[row.worker] += 1
            first, _ = self._training_losses.get(row.worker, (row.loss, row.loss))
            self._training_losses[row.worker] = first, row.loss
            self._samples += row.batch_size or 0
            self._exchanges[row.worker] += bool(row.applied or row.merged)
        elif row.kind == "cut":
            self._attendance.cut(row.batch_size or 0, row.compute_seconds or 0.0)

    def links(self, row: LinksRow, about: Mapping[str, Any]) -> None:
        """Take in a row of the links of a run with that manifest."""
        self._bytes_sent += row.bytes
        if path := wan_path(about, row.sender, row.receiver):
            self._between_clouds[path] = self._between_clouds.get(path, 0) + row.bytes

    def transfers(self, row: TransfersRow) -> None:
        """Take in a row of the transfers."""
        self._losses.add(row)

    def classes(self, row: ClassesRow) -> None:
        """Take in a row of the classes."""
        self._streamed.classes(row)

    def membership(self, row: MembershipRow) -> None:
        """Take in a row of the membership."""
        self._attendance.add(row, self._samples)
        if row.iteration is not None and row.participant in self.iterations:
            self.iterations[row.participant] = row.iteration

    def summary(
        self,
        about: Mapping[str, Any],
        ending: Ending,
        *,
        wall_seconds: float,
        evaluation_seconds: float,
        target: float | None,
        late: Mapping[str, Any] | None,
        messages: Mapping[str, int] | None,
    ) -> dict[str, Any]:
        """The summary of a run with that manifest; see `summarize`, and `Recorder.summary` for `messages`."""
        tariff, availability = _tariff(about), self._attendance.told(self._samples, ending.seconds)
        return summarize(
            scenario=about["scenario"],
            system=about["system"],
            system_label=system_label(about),
            seed=about["seed"],
            ending=ending,
            wall_seconds=wall_seconds,
            evaluation_seconds=evaluation_seconds,
            samples=self._samples,
            wan_bytes=sum(self._between_clouds.values()),
            bytes_sent=self._bytes_sent,
            iterations=self._done,
            exchanges=self._exchanges,
            losses=self._training_losses,
            spent=self._spent,
            metric=Metric.of(about),
            evaluations=list(self._evaluations.items()),
            full_evaluation=self._full_evaluation,
            evaluation_samples=about.get("evaluation_samples"),
            evaluated_on=about.get("evaluated_on", "test"),
            target=target,
            late=late,
            cost_as=about.get("cost_as"),
            transport=self._losses.told,
            availability=availability and {**availability, **({"messages": messages} if messages else {})},
            stream=self._streamed.told(ending.seconds),
            cost=cost_of(tariff, ending.seconds, self._between_clouds, self._attendance.absences) if tariff else None,
        )

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


def _tariff(about: Mapping[str, Any]) -> Tariff | None:
    """A run's prices, if it has any. What a live node writes is a part of a run, whose cost is not its own."""
    return None if "rank" in about else about.get("tariff")
