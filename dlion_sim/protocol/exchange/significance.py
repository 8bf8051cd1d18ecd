"""Only significant updates (Gaia: Hsieh et al., NSDI'17, the significance filter)."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.events import Action
from dlion_sim.protocol.exchange.selection import indices_of
from dlion_sim.protocol.messages import Body, Contribution, Count, Message, Shapes, is_one
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import LocalGradient, Outgoing, Update, dense_is_smaller


class Announcement(Body, frozen=True, array_like=True):
    """The entries of these indices (one tensor: indices [m]) change, by a contribution of `iteration` on its way."""

    kind: ClassVar[str] = "announcement"
    iteration: Count

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return is_one(shapes, "i4", parameters)


@register("exchange", "significance")
class SignificanceExchange(Exchange):
    """Updates accumulate until they are large relative to the weight; then they go to every peer.

    An entry is sent when |accumulated update| > threshold * |weight|, and always where the weight is 0. If that is so
    much that coding it as a whole gradient is no larger, everything accumulated goes. An iteration in which nothing is
    significant still sends its clock. Each worker represents a data centre of one machine; it applies its own updates
    at once. Sent updates and residuals always sum to all updates.
    """

    class Parameters(ChoiceParameters):
        """Defaults: the paper's threshold and its schedule, as recalled."""

        threshold: float = Field(0.01, ge=0, description="Initial threshold, relative to the weight.")
        schedule: Literal["inverse_sqrt", "constant", "learning_rate"] = Field(
            "inverse_sqrt",
            description="inverse_sqrt: threshold / sqrt(iteration), as in the convergence proof; learning_rate: as "
            "the optimizer's schedule, as in Gaia's public code.",
        )
        barrier: Literal["none", "selective"] = Field(
            "none",
            description="selective: updates for a busy link are announced by their indices, and the receiver waits "
            "for them.",
        )

    parameters: Parameters
    receives = (Contribution, Announcement)

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._residual = torch.zeros_like(setup.replica.parameters)
        self._announced: dict[int, int] = {}
        """By peer, the newest iteration whose updates were announced."""
        self._here: dict[int, int] = {}
        """By peer, the newest iteration whose updates have arrived."""

    def lost(self, peer: int) -> None:
        for known in (self._announced, self._here):
            known.pop(peer, None)

    def joined(self, peer: int, iteration: int) -> list[Action]:
        return []

    def arrived(self, update: Update) -> None:
        """All updates announced up to its iteration have arrived, as messages arrive in order."""
        self._here[update.sender] = max(self._here.get(update.sender, -1), update.body.iteration)

    def received(self, message: Message) -> list[Action]:
        assert isinstance(message.body, Announcement)
        self._announced[message.sender] = max(self._announced.get(message.sender, -1), message.body.iteration)
        return []

    def ready(self, iteration: int) -> bool:
        return all(self._here.get(peer, -1) >= tag for peer, tag in self._announced.items())

    def outgoing(self, own: LocalGradient) -> Outgoing:
        """The significant part of the residual, the same to all."""
        self._residual += own.gradient
        significant = self._significant(own)
        indices = indices_of(significant)
        if dense_is_smaller(len(indices), significant.numel()):
            update = self.whole(
                LocalGradient(own.iteration, own.batch_size, self._residual.clone(), own.seconds, own.factor, own.time)
            )
        else:
            update = self.entries(own, indices, self._residual.index_select(0, indices))
        update.add_to(self._residual, -1.0)
        return Outgoing(self.whole(own), [*self._announcements(update), *self.to_all(update)])

    def _announcements(self, update: Update) -> list[tuple[int, Message]]:
        """Indices ahead of the values, for each link that is still busy."""
        if self.parameters.barrier == "none" or len(update.tensors) == 1 or not len(update.tensors[0]):
            return []
        message = Message(self.setup.worker, Announcement(update.body.iteration), (update.tensors[0],))
        return [(peer, message) for peer in self.setup.peers if self.setup.links.is_busy(peer)]

    def _significant(self, own: LocalGradient) -> Tensor:
        """Which entries [P] to send: updates and weights as they are once the own update is applied (plain SGD)."""
        threshold = self.parameters.threshold * self._decay(own.iteration)
        step = self.setup.replica.learning_rate * own.factor
        weights = self.setup.replica.parameters.sub(own.gradient, alpha=step)
        large = self._residual.abs().mul_(step) > weights.abs().mul_(threshold)
        return (large | (weights == 0)) & (self._residual != 0)

    def _decay(self, iteration: int) -> float:
        match self.parameters.schedule:
            case "inverse_sqrt":
                return 1 / math.sqrt(iteration + 1)
            case "learning_rate":
                return self.setup.replica.decay
            case _:
                return 1.0


SYSTEMS["gaia"] = Composition(  # Sparse in data, synchronous in clocks.
    "Hsieh et al., NSDI'17",
    exchange={"kind": "significance"},
    synchronization={"kind": "bounded_staleness", "staleness": 0},
)
