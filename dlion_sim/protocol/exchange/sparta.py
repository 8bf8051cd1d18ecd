"""Sparse averaging of parameters (SPARTA: EXO Labs, 2025)."""

import torch
from pydantic import Field

from dlion_sim.protocol.choices import ChoiceParameters, Exchange
from dlion_sim.protocol.systems import SYSTEMS, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing, Update
from dlion_sim.streams import stream


@register("exchange", "sparta")
class SpartaExchange(Exchange):
    """Each worker steps by its own gradient, and of a few random parameters, the same on all, takes everyone's mean."""

    class Parameters(ChoiceParameters):
        part: float = Field(0.005, gt=0, le=1, description="Of all parameters, averaged in an iteration (recalled).")

    def outgoing(self, own: LocalGradient) -> Outgoing:
        self.setup.replica.step(own.gradient)
        update = self.stretch(own, 0, self.setup.replica.parameters[self._chosen(own.iteration)])
        return Outgoing(None, self.to_all(update))  # without indices, which everyone knows

    def arrived(self, update: Update) -> None:
        update.check_whole(len(self._chosen(update.body.iteration)))

    def apply(self, incoming: Incoming) -> int:
        change = torch.zeros_like(mine := self.setup.replica.parameters)
        for update in incoming.received:
            chosen = self._chosen(update.body.iteration)
            change[chosen] += (update.tensors[0] - mine[chosen]) / (len(self.setup.peers) + 1)
        self.setup.replica.mix(1.0, [(change, 1.0)])
        return len(incoming.received)

    def _chosen(self, iteration: int) -> torch.Tensor:
        rng, size = stream(self.setup.seed, "sparta", iteration), self.setup.replica.layout.size
        return torch.from_numpy(rng.choice(size, max(1, round(self.parameters.part * size)), replace=False))


SYSTEMS["sparta"] = SYSTEMS["baseline"].variant("EXO Labs, 2025", exchange={"kind": "sparta"})
