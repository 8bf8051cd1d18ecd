"""Only significant updates (Gaia: Hsieh et al., NSDI'17, the significance filter)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, LocalGradient, Outgoing, Setup, register
from dlion_sim.protocol.exchange.sizes import dense_is_smaller


@register("exchange", "significance")
class SignificanceExchange(Exchange):
    """Updates accumulate until they are large against the weight that they change; then they go to every peer.

    An entry is sent when |accumulated update| > threshold * |weight|, and always where the weight is 0. If that is so
    much that coding it as a whole gradient is no larger, everything accumulated goes. An iteration in which nothing is
    significant still sends its clock. Each worker stands for a data centre of one machine; it applies its own updates
    at once. What is sent and what is kept always sum to all updates.
    """

    class Parameters(ChoiceParameters):
        """Defaults: the paper's threshold and its schedule, as recalled."""

        threshold: float = Field(0.01, ge=0, description="Initial threshold, relative to the weight.")
        schedule: Literal["inverse_sqrt", "constant"] = Field(
            "inverse_sqrt",
            description="inverse_sqrt: threshold / sqrt(iteration), which the convergence proof needs; or constant.",
        )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._unsent = torch.zeros_like(setup.replica.parameters)

    def outgoing(self, own: LocalGradient) -> Outgoing:
        """The significant part of what was not sent yet, the same to all."""
        self._unsent += own.gradient
        significant = self._significant(own)
        if dense_is_smaller(int(significant.sum()), significant.numel()):
            update = self.whole(
                LocalGradient(own.iteration, own.batch_size, self._unsent.clone(), own.seconds, own.factor)
            )
        else:
            indices = significant.nonzero().squeeze(1).to(torch.int32)
            update = self.entries(own, indices, self._unsent.index_select(0, indices))
        update.add_to(self._unsent, -1.0)
        return Outgoing(self.whole(own), self.to_all(update))

    def _significant(self, own: LocalGradient) -> Tensor:
        """Which entries [P] to send: updates and weights as they are once the own update is applied (plain SGD)."""
        threshold = self.parameters.threshold
        if self.parameters.schedule == "inverse_sqrt":
            threshold /= math.sqrt(own.iteration + 1)
        step = self.setup.replica.learning_rate * own.factor
        weights = self.setup.replica.parameters.sub(own.gradient, alpha=step)
        large = self._unsent.abs().mul_(step) > weights.abs().mul_(threshold)
        return (large | (weights == 0)) & (self._unsent != 0)
