"""Records a participant's traffic on its node, and keeps its parameters for evaluation."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from dlion_sim.assembly import Recorder, Transfer
from dlion_sim.live.mesh import Mesh
from dlion_sim.live.snapshots import Snapshots
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.worker import Worker


class Observer:
    """Observes participant `rank`, by the run's clock. Messages to the same machine are no traffic.

    Snapshots of its parameters, if they are `evaluated`, are kept in `folder`.
    """

    def __init__(
        self,
        rank: int,
        participant: Worker | ParameterServer,
        recorder: Recorder,
        same_machine: Collection[int],
        folder: Path,
        *,
        evaluated: bool,
    ) -> None:
        self._rank = rank
        self._participant = participant
        self._recorder = recorder
        self._same_machine = same_machine
        self._is_evaluated = evaluated
        self.member_since = 0.0
        """When the participant got a state of the run; before, there is nothing to evaluate."""
        self._is_over = False
        """Whether all that belongs to the run is recorded; messages after it do not."""
        self.snapshots = Snapshots(folder)

    def left(self, transfer: Transfer, now: float) -> None:
        """A message has left this machine."""
        if transfer.receiver not in self._same_machine and not self._is_over:
            self._recorder.sent(transfer, now)

    def observe(self, links: Mesh, now: float) -> None:
        """Keep the parameters for evaluation, and record what the links have carried."""
        if now >= self.member_since and self._is_evaluated:
            self.snapshots.add(now, self._participant.iteration, self._participant.replica.parameters)
        self.write_down(links, now)

    def cut(self, batch_size: int | None, now: float) -> None:
        """Record what a kill that is due will cut: the gradient of so many samples, if one is computed."""
        if isinstance(self._participant, Worker):
            self._recorder.lost(self._rank, self._participant.unfinished(now), batch_size, now)

    def write_down(self, links: Mesh, now: float) -> None:
        """Record what the links have carried, and flush all records to the disk."""
        for transfer, size in self._under_way(links):
            self._recorder.carried(transfer, size)
        self._recorder.end_interval(now)
        self._recorder.flush()

    def end(self, links: Mesh, now: float) -> None:
        """Observe a last time, and record what the end of the run cuts off."""
        self.observe(links, now)
        for transfer, _ in self._under_way(links):
            self._recorder.cut_off(transfer)
        if isinstance(self._participant, Worker):
            self._recorder.unfinished(self._rank, self._participant.unfinished(now), now)
        self._is_over = True

    def _under_way(self, links: Mesh) -> Iterator[tuple[Transfer, float]]:
        """The messages under way to other machines, and how many of their bytes have arrived."""
        return (each for each in links.under_way() if each[0].receiver not in self._same_machine)
