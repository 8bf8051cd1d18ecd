"""A fixed part of the gradient to every peer, with error feedback: top-k, random-k and deep gradient compression.

Unlike with Max-N, all workers apply the same entries: a worker's own update is the one that it sends, and the rest is
its residual.
"""

from __future__ import annotations

import math
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.exchange.selection import ranked
from dlion_sim.protocol.registry import register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing

Density = Annotated[float, Field(gt=0, le=1)]


@register("exchange", "top_k")
class TopKExchange(Exchange):
    """The largest entries of the gradient plus what earlier ones left over (Stich et al., NeurIPS'18).

    With an optimizer that remembers gradients (momentum, Adam, Muon), each worker takes its own steps, and these are
    sent and added up in place of gradients, as in momentum correction (Lin et al., ICLR'18): entries that come seldom,
    and then many gradients' worth, would be normalized away.
    """

    class Parameters(ChoiceParameters):
        """The part to send."""

        density: Density = Field(0.01, description="Part of all entries that is sent.")

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._residual = torch.zeros_like(setup.replica.parameters)

    def outgoing(self, own: LocalGradient) -> Outgoing:
        replica = self.setup.replica
        self._residual += replica.step_of(own.gradient) if replica.remembers else own.gradient
        count = max(1, round(self.parameters.density * self._residual.numel()))
        indices = self._choose(count)
        update = self.entries(own, indices, self._residual.index_select(0, indices))
        update.add_to(self._residual, -1.0)
        return Outgoing(update, self.to_all(update))

    def apply(self, incoming: Incoming) -> int:
        if not self.setup.replica.remembers:
            return super().apply(incoming)
        if terms := [(update, incoming.factor(update.body)) for update in incoming.updates]:
            self.setup.replica.add(self.setup.sums.of(terms, self.setup.replica.layout.size))
        return len(incoming.received)

    def _choose(self, count: int) -> Tensor:
        return largest(self._residual, count)


@register("exchange", "random_k")
class RandomKExchange(TopKExchange):
    """Random entries of the gradient plus what earlier ones left over (Stich et al., NeurIPS'18)."""

    def __init__(self, parameters: TopKExchange.Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._rng = setup.stream("exchange")

    def _choose(self, count: int) -> Tensor:
        chosen = self._rng.choice(self._residual.numel(), count, replace=False, shuffle=False)
        return torch.from_numpy(chosen).to(self._residual.device, torch.int32).sort().values


@register("exchange", "dgc")
class DeepGradientCompression(Exchange):
    """Top-k of locally accumulated momentum (Lin et al., ICLR'18).

    Momentum correction: u <- m * u + g, v <- v + u; the largest entries of v are sent. Momentum factor masking: where v
    was sent, u is cleared too.
    """

    class Parameters(ChoiceParameters):
        """Defaults: the paper's."""

        density: Density = Field(0.001, description="Part of all entries that is sent, after the warm-up.")
        warmup: list[Density] = Field(
            [0.25, 0.0625, 0.015625, 0.004], description="The part in each of the first epochs."
        )
        momentum: float = Field(0.9, ge=0, lt=1, description="Of the local accumulation; the optimizer needs none.")
        clip_norm: float | None = Field(
            None, gt=0, description="Largest norm of a gradient summed over all workers; each clips to its n^-1/2 part."
        )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._momentum = torch.zeros_like(setup.replica.parameters)
        self._velocity = torch.zeros_like(setup.replica.parameters)

    def outgoing(self, own: LocalGradient) -> Outgoing:
        self._momentum.mul_(self.parameters.momentum).add_(self._clipped(own.gradient))
        self._velocity += self._momentum
        count = max(1, round(self._density(own) * self._velocity.numel()))
        indices = largest(self._velocity, count)
        update = self.entries(own, indices, self._velocity.index_select(0, indices))
        for memory in (self._velocity, self._momentum):
            memory.index_fill_(0, indices.long(), 0.0)
        return Outgoing(update, self.to_all(update))

    def _density(self, own: LocalGradient) -> float:
        epoch = own.iteration * own.batch_size * self.setup.workers // self.setup.training_samples
        return self.parameters.warmup[epoch] if epoch < len(self.parameters.warmup) else self.parameters.density

    def _clipped(self, gradient: Tensor) -> Tensor:
        if self.parameters.clip_norm is None:
            return gradient
        limit = self.parameters.clip_norm / math.sqrt(self.setup.workers)
        return gradient * min(1.0, limit / max(float(gradient.norm()), 1e-30))


def largest(values: Tensor, count: int) -> Tensor:
    """Indices (int32, increasing) of the `count` entries of greatest magnitude, fewer where the others are zero."""
    return ranked(values).top(count)
