"""Sparse averaging of parameters (SPARTA: EXO Labs, 2025)."""

from functools import lru_cache
from typing import ClassVar

import torch
from pydantic import Field

from dlion_sim.protocol.choices import ChoiceParameters, Exchange
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

    def outgoing(self, own: LocalGradient) -> Outgoing:
        self.setup.replica.step(own.gradient)
        values = self.setup.replica.parameters[self._chosen(own.iteration)]
        update = Update(self.setup.worker, Scattered(own.iteration, own.batch_size), (values,))
        return Outgoing(None, self.to_all(update))

    def arrived(self, update: Update) -> None:
        update.check_whole(self._count)

    def apply(self, incoming: Incoming) -> int:
        change = torch.zeros_like(mine := self.setup.replica.parameters)
        of = {iteration: self._chosen(iteration) for iteration in {each.body.iteration for each in incoming.received}}
        for update in incoming.received:
            chosen = of[update.body.iteration]
            change[chosen] += (update.tensors[0] - mine[chosen]) / (len(incoming.peers) + 1)
        self.setup.replica.mix(1.0, [(change, 1.0)])
        return len(incoming.received)

    @property
    def _count(self) -> int:
        return max(1, round(self.parameters.part * self.setup.replica.layout.size))

    def _chosen(self, iteration: int) -> torch.Tensor:
        parameters = self.setup.replica.parameters
        return _drawn(self.setup.seed, iteration, len(parameters), self._count).to(parameters.device)


@lru_cache(maxsize=4)
def _drawn(seed: int, iteration: int, size: int, count: int) -> torch.Tensor:
    """The indices [count] of an iteration's parameters, drawn once for all workers. Not to be written."""
    return torch.from_numpy(stream(seed, "sparta", iteration).choice(size, count, replace=False))


SYSTEMS["sparta"] = Composition("EXO Labs, 2025", exchange={"kind": "sparta"})
