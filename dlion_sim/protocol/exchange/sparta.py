"""Sparse averaging of parameters (SPARTA: EXO Labs, 2025)."""

from functools import lru_cache
from typing import ClassVar

import torch
from pydantic import Field

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.messages import Contribution, Stage
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing, Update
from dlion_sim.streams import stream


class Scattered(Contribution, frozen=True, array_like=True):
    """Some of the sender's parameters, without indices, which all workers know. None may be missing: they are others in
    other iterations."""

    wire_kind: ClassVar[str] = "sparse_param"
    stage: ClassVar[Stage | None] = None


@register("exchange", "sparta")
class SpartaExchange(Exchange):
    """Each worker steps by its own gradient, and takes the mean over all workers of a few random parameters, the same
    on all."""

    receives = (Scattered,)

    class Parameters(ChoiceParameters):
        part: float = Field(0.005, gt=0, le=1, description="Of all parameters, averaged in an iteration (recalled).")

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._count = max(1, round(parameters.part * setup.replica.layout.size))

    def outgoing(self, own: LocalGradient) -> Outgoing:
        self.setup.replica.step(own.gradient)
        values = self.setup.replica.parameters[self._chosen(own.iteration)]
        update = Update(self.setup.worker, Scattered(own.iteration, own.batch_size), (values,))
        return Outgoing(None, self.to_all(update))

    def arrived(self, update: Update) -> None:
        update.check_whole(self._count)

    def apply(self, incoming: Incoming) -> int:
        for iteration in sorted({update.body.iteration for update in incoming.received}):
            chosen = self._chosen(iteration)
            mine = self.setup.replica.parameters[chosen]
            theirs = [update.tensors[0] for update in incoming.received if update.body.iteration == iteration]
            change = (torch.stack(theirs) - mine).sum(0) / (len(incoming.peers) + 1)
            self.setup.replica.write_entries(chosen, mine + change)
        return len(incoming.received)

    def _chosen(self, iteration: int) -> torch.Tensor:
        parameters = self.setup.replica.parameters
        return _drawn(self.setup.seed, iteration, len(parameters), self._count).to(parameters.device)


@lru_cache(maxsize=4)
def _drawn(seed: int, iteration: int, size: int, count: int) -> torch.Tensor:
    """The indices [count] of an iteration's parameters, drawn once for all workers. Not to be written."""
    return torch.from_numpy(stream(seed, "sparta", iteration).choice(size, count, replace=False))


SYSTEMS["sparta"] = Composition("EXO Labs, 2025", exchange={"kind": "sparta"})
