"""No weights are ever merged."""

from __future__ import annotations

from dlion_sim.protocol.choices import KnowledgeTransfer, Merge
from dlion_sim.protocol.events import Action
from dlion_sim.protocol.registry import register


@register("knowledge_transfer", "none")
class NoTransfer(KnowledgeTransfer):
    """Workers learn from each other by gradients only."""

    def stepped(self, iterations: int, loss: float) -> list[Action]:
        return []

    def merges(self) -> list[Merge]:
        return []
