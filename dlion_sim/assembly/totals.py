"""Sums over a run's rows, for its summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dlion_sim.assembly.optional_totals import AvailabilityTotals, PacketTotals, StreamTotals
from dlion_sim.metric import Metric
from dlion_sim.results import (
    SPENT,
    TESTS,
    ClassesRow,
    Ending,
    LinksRow,
    MembershipRow,
    MetricsRow,
    Row,
    Tariff,
    TransfersRow,
    cost_of,
    summarize,
    system_label,
    wan_path,
)

_SAME_SECONDS = 1e-6
"""Times that differ by less are equal: they are sums of floats."""


class Totals:
    """Sums over rows, in the order of time, of a run of these `workers`."""

    def __init__(self, workers: Iterable[int]) -> None:
        self.iterations = dict.fromkeys(workers, 0)
        """The number of each worker's last iteration; at first, after joining, the sponsor's."""
        self._done = dict.fromkeys(self.iterations, 0)
        """How many iterations each worker has completed."""
        self._samples = 0
        self._dropped: float | None = None
        """Samples of which what was learned reached no other worker."""
        self._bytes_sent = 0
        self._packets = PacketTotals()
        self._stream = StreamTotals()
        self._between_clouds: dict[tuple[str, str], int] = {}
        """Bytes from one cloud to another."""
        self._training_losses: dict[int, tuple[float, float]] = {}
        self._evaluations: dict[float, dict[int, float]] = {}
        """The task's metric by time and worker."""
        self._full_evaluation: dict[int, float] = {}
        """The task's metric by worker, on all samples, at the end of the run."""
        self._ends = dict.fromkeys(self.iterations, 0.0)
        """The end of each worker's last iteration."""
        self._exchanges = dict.fromkeys(self.iterations, 0)
        """Iterations of each worker in which it applied a peer's contribution."""
        self._spent = {worker: dict.fromkeys(SPENT, 0.0) for worker in self.iterations}
        """Seconds of each worker."""
        self._availability = AvailabilityTotals(self.iterations)

    @property
    def score(self) -> float | None:
        last = next(reversed(self._evaluations.values()), None)
        return float(np.mean(list(last.values()))) if last else None

    def add(self, row: Row, about: Mapping[str, Any]) -> None:
        """Add a row of a run with the manifest `about`. Raises AssertionError for inconsistent times."""
        match row:
            case MetricsRow():
                self._add_metrics(row)
            case LinksRow():
                self._bytes_sent += row.bytes
                if path := wan_path(about, row.sender, row.receiver):
                    self._between_clouds[path] = self._between_clouds.get(path, 0) + row.bytes
            case TransfersRow():
                self._packets.add(row)
            case ClassesRow():
                self._stream.classes(row)
            case MembershipRow():
                self._availability.add(row, self._samples)
                if row.iteration is not None and row.participant in self.iterations:
                    self.iterations[row.participant] = row.iteration
            case _:
                pass

    def _add_metrics(self, row: MetricsRow) -> None:
        if row.kind not in TESTS:
            self._check_times(row)
            self._spend(row)
        if row.kind == "arrivals":
            self._stream.arrivals(row)
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
            if row.dropped is not None:
                self._dropped = (self._dropped or 0.0) + row.dropped
            self._exchanges[row.worker] += bool(row.applied or row.merged)
        elif row.kind == "cut":
            self._availability.cut(row.batch_size or 0, row.compute_seconds or 0.0)

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
        """The summary of a run with the manifest `about`; see `summarize`, and `Recorder.summary` for `messages`."""
        tariff, availability = _tariff(about), self._availability.summary(self._samples, ending.seconds)
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
            transport=self._packets.summary,
            availability=availability and {**availability, **({"messages": messages} if messages else {})},
            stream=self._stream.summary(ending.seconds),
            dropped=self._dropped,
            cost=cost_of(tariff, ending.seconds, self._between_clouds, self._availability.outages) if tariff else None,
        )

    def _check_times(self, row: MetricsRow) -> None:
        """Check that a worker's computation and wait fit into the time since its last iteration."""
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
    """A run's prices, if it has any; a live node's folder, a part of a run, has none."""
    return None if "rank" in about else about.get("tariff")
