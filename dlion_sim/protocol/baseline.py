"""Baseline's choices: fixed batches, whole gradients to every peer, and no knowledge transfer."""

from __future__ import annotations

from dlion_sim.protocol.choices import Batching, Exchange, KnowledgeTransfer
from dlion_sim.protocol.events import Action
from dlion_sim.protocol.messages import Contribution
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import LocalGradient, Outgoing


@register("batching", "fixed")
class FixedBatching(Batching):
    """Local batches of one fixed size on every worker; all gradients have the same weight."""

    def batch_size(self, iteration: int) -> int:
        return self.setup.batch_size

    def global_batch_size(self, iteration: int) -> int:
        return self.setup.batch_size * self.setup.workers

    def weight(self, gradient: Contribution, own_batch_size: int) -> float:
        return 1.0


@register("exchange", "full")
class FullExchange(Exchange):
    """Send every gradient, whole, to every peer."""

    def outgoing(self, own: LocalGradient) -> Outgoing:
        whole = self.whole(own)
        return Outgoing(whole, self.to_all(whole))


@register("knowledge_transfer", "none")
class NoTransfer(KnowledgeTransfer):
    """Workers learn from each other by the exchange only."""

    def stepped(self, iterations: int, loss: float) -> list[Action]:
        return []

    def merge(self) -> int:
        return 0


SYSTEMS["baseline"] = Composition("Whole gradients to every peer, synchronously")
