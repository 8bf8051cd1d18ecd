"""What a node measures of its own part, row by row into its run folder."""

from __future__ import annotations

from collections.abc import Collection
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
    """Takes in what happens at participant `rank`, at seconds since the start; `writer` gets it as rows.

    What goes to participants on the same machine, `local`, counts as no traffic.
    """

    def __init__(self, writer: RunWriter, rank: int, local: Collection[int]) -> None:
        self._writer = writer
        self._rank = rank
        self._local = local
        self._links: dict[int, _LinkInterval] = {}

    def iteration(self, report: Report, now: float) -> None:
        """The worker has ended an iteration."""
        self._writer.metrics(
            MetricsRow(
                virtual_time=now,
                wall_time=now,
                worker=self._rank,
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

    def sent(self, receiver: int, message: Message) -> None:
        """The last byte of a message has left."""
        if receiver in self._local:
            return
        interval = self._links.setdefault(receiver, _LinkInterval())
        interval.bytes += message.size
        interval.messages += 1
        if isinstance(message.body, Contribution):
            interval.gradients += 1
            if message.body.n_percent is not None:
                interval.n_percents.append(message.body.n_percent)

    def interval(self, now: float) -> None:
        """An interval of the links ends; all rows so far go to the disk, where they outlive the node."""
        for receiver, interval in sorted(self._links.items()):
            n_percent = fmean(interval.n_percents) if interval.n_percents else None
            self._writer.links(
                LinksRow(now, self._rank, receiver, interval.bytes, interval.messages, interval.gradients, n_percent)
            )
        self._links.clear()
        self._writer.flush()

    def evaluation(self, score: Score, iteration: int, time: float) -> None:
        """The worker's parameters at that time, after so many iterations, were evaluated."""
        self._writer.metrics(
            MetricsRow(
                virtual_time=time,
                wall_time=time,
                worker=self._rank,
                kind="evaluation",
                iteration=iteration,
                loss=score.loss,
                accuracy=score.accuracy,
            )
        )
