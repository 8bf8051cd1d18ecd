"""What is written down of a participant on its node, and kept for later."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from dlion_sim.assembly import Recorder, Transfer
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.worker import Worker


@dataclass(frozen=True)
class Snapshot:
    """A worker's parameters [P] as they were at a time, after so many iterations. To be evaluated after the run."""

    time: float
    iteration: int
    parameters: Tensor


class Links(Protocol):
    """What tells of messages under way."""

    def under_way(self) -> Iterator[tuple[Transfer, float]]:
        """Every message that has begun to leave and not left whole, and how many of its bytes have arrived."""


class Observer:
    """Observes participant `rank`, by the run's clock. Messages to the same machine are no traffic."""

    def __init__(
        self,
        rank: int,
        participant: Worker | ParameterServer,
        recorder: Recorder,
        same_machine: Collection[int],
    ) -> None:
        self._rank = rank
        self._participant = participant
        self._recorder = recorder
        self._same_machine = same_machine
        self.member_since = 0.0
        """Since when the participant has a state of the run's; before, there is nothing to evaluate."""
        self._is_over = False
        """Whether all is written down that belongs to the run; what leaves during the good-byes does not."""
        self.snapshots: list[Snapshot] = []

    def left(self, transfer: Transfer, now: float) -> None:
        """A message has left this machine."""
        if transfer.receiver not in self._same_machine and not self._is_over:
            self._recorder.sent(transfer, now)

    def observe(self, links: Links, now: float) -> None:
        """Keep the parameters as they are, for evaluation, and write down what the links have carried."""
        if now >= self.member_since and isinstance(self._participant, Worker):
            if self.snapshots and self.snapshots[-1].time >= now:
                self.snapshots.pop()
            replica = self._participant.replica
            self.snapshots.append(Snapshot(now, self._participant.iteration, replica.snapshot()))
        self.write_down(links, now)

    def write_down(self, links: Links, now: float) -> None:
        """Write down what the links have carried, and bring all that is known to the disk."""
        for transfer, size in self._under_way(links):
            self._recorder.carried(transfer, size)
        self._recorder.end_interval(now)
        self._recorder.flush()

    def end(self, links: Links, now: float) -> None:
        """Observe a last time, and write down what the end of the run cuts off."""
        self.observe(links, now)
        for transfer, _ in self._under_way(links):
            self._recorder.cut_off(transfer)
        if isinstance(self._participant, Worker):
            self._recorder.unfinished(self._rank, self._participant.unfinished(now), now)
        self._is_over = True

    def _under_way(self, links: Links) -> Iterator[tuple[Transfer, float]]:
        """The messages under way to other machines, and how many of their bytes have arrived."""
        return (each for each in links.under_way() if each[0].receiver not in self._same_machine)
