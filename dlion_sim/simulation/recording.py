"""What a simulation measures, row by row into its run folder and in sums for its summary."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from dlion_sim.learning import Score
from dlion_sim.protocol.events import Report
from dlion_sim.protocol.messages import Contribution, Message
from dlion_sim.results import LinksRow, MetricsRow, RunWriter


@dataclass
class _LinkInterval:
    """What a directed link has carried since the last row about it."""

    bytes: int = 0
    messages: int = 0
    gradients: int = 0
    n_percents: list[float] = field(default_factory=list)
    """N of the Max-N messages."""


class Recorder:
    """Takes in what happens, at virtual times in seconds; `writer` gets it as rows."""

    def __init__(self, writer: RunWriter, workers: int) -> None:
        self._writer = writer
        self._began = time.perf_counter()
        self._links: dict[tuple[int, int], _LinkInterval] = {}
        self.samples = 0
        self.bytes_sent = 0
        self.iterations = [0] * workers
        self.last_losses: list[float | None] = [None] * workers
        self.evaluations: list[tuple[float, list[float]]] = []
        self.evaluation_seconds = 0.0
        """Wall time that evaluations took."""

    @property
    def wall_seconds(self) -> float:
        """Since the recorder was made."""
        return time.perf_counter() - self._began

    def iteration(self, worker: int, report: Report, now: float) -> None:
        """A worker has ended an iteration."""
        self.samples += report.batch_size
        self.iterations[worker] = report.iteration
        self.last_losses[worker] = report.loss
        self._writer.metrics(
            MetricsRow(
                virtual_time=now,
                wall_time=self.wall_seconds,
                worker=worker,
                kind="iteration",
                iteration=report.iteration,
                loss=report.loss,
                batch_size=report.batch_size,
                global_batch_size=report.global_batch_size,
                staleness=report.staleness,
                applied=report.applied,
                merged=report.merged,
                compute_seconds=report.compute_seconds,
                wait_seconds=report.wait_seconds,
            )
        )

    def sent(self, sender: int, receiver: int, message: Message) -> None:
        """The last byte of a message has left its sender."""
        self.bytes_sent += message.size
        interval = self._links.setdefault((sender, receiver), _LinkInterval())
        interval.bytes += message.size
        interval.messages += 1
        if isinstance(message.body, Contribution):
            interval.gradients += 1
            if message.body.n_percent is not None:
                interval.n_percents.append(message.body.n_percent)

    def evaluation(self, scores: Sequence[Score], now: float, seconds: float) -> None:
        """Every worker's replica was evaluated, in `seconds` of wall time; this also ends an interval of the links."""
        self.evaluation_seconds += seconds
        self.evaluations.append((now, [score.accuracy for score in scores]))
        for worker, score in enumerate(scores):
            self._writer.metrics(
                MetricsRow(
                    virtual_time=now,
                    wall_time=self.wall_seconds,
                    worker=worker,
                    kind="evaluation",
                    iteration=self.iterations[worker],
                    loss=score.loss,
                    accuracy=score.accuracy,
                )
            )
        for (sender, receiver), interval in sorted(self._links.items()):
            n_percent = fmean(interval.n_percents) if interval.n_percents else None
            self._writer.links(
                LinksRow(now, sender, receiver, interval.bytes, interval.messages, interval.gradients, n_percent)
            )
        self._links.clear()
