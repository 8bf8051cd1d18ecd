"""Weight exchange (DLion, HotCloud'19): workers average their weights now and then."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import ChoiceParameters, KnowledgeTransfer, Setup
from dlion_sim.protocol.events import Action, Send
from dlion_sim.protocol.messages import Message, Weights
from dlion_sim.protocol.registry import register


@register("knowledge_transfer", "weight_exchange")
class WeightExchange(KnowledgeTransfer):
    """Every `period` iterations each worker sends its weights to all peers, and merges what arrives.

    Training does not wait. Those that are merged at once, and the own weights, end up with equal parts. The ancestor of
    direct knowledge transfer; how the averages were formed is recalled only in outline.
    """

    class Parameters(ChoiceParameters):
        """How often."""

        period: int = Field(100, ge=1, description="Iterations between exchanges.")

    parameters: Parameters
    receives = (Weights,)

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._arrived: list[Tensor] = []
        self._iterations = 0
        """Completed ones; 0 before the first here."""

    def stepped(self, iterations: int, loss: float) -> list[Action]:
        before, self._iterations = self._iterations or iterations - 1, iterations
        if iterations // self.parameters.period == before // self.parameters.period:  # Some may have been skipped.
            return []
        weights = Message(self.setup.worker, Weights(iterations), (self.setup.replica.snapshot(),))
        return [Send(peer, weights) for peer in self.setup.peers]

    def received(self, message: Message) -> list[Action]:
        self._arrived.append(message.tensors[0])
        return []

    def merge(self) -> int:
        """One after another with shares 1/2, 1/3, ..., so that all count the same."""
        arrived, self._arrived = self._arrived, []
        for number, weights in enumerate(arrived, start=2):
            self.setup.replica.merge(weights, 1 / number)
        return len(arrived)
