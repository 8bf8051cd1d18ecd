"""Weight exchange (DLion, HotCloud'19): workers average their weights now and then."""

from __future__ import annotations

from pydantic import Field

from dlion_sim.protocol.choices import ChoiceParameters, KnowledgeTransfer, Merge, Setup
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
        self._arrived: list[Message] = []

    def stepped(self, iterations: int, loss: float) -> list[Action]:
        if iterations % self.parameters.period:
            return []
        weights = Message(self.setup.worker, Weights(iterations), (self.setup.replica.snapshot(),))
        return [Send(peer, weights) for peer in self.setup.peers]

    def received(self, message: Message) -> list[Action]:
        self._arrived.append(message)
        return []

    def merges(self) -> list[Merge]:
        """Merged one after another with shares 1/2, 1/3, ..., all count the same."""
        arrived, self._arrived = self._arrived, []
        return [Merge(message.tensors[0], 1 / (number + 2)) for number, message in enumerate(arrived)]
