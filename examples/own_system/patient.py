"""An exchange of one's own: what a link has no room for now goes later, summed up."""

from torch import Tensor

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.events import Action
from dlion_sim.protocol.systems import Composition
from dlion_sim.protocol.updates import LocalGradient, Outgoing


class Patient(Exchange):
    """Each peer gets the sum of all gradients since the last message to it, as soon as that has left."""

    sends_every_iteration = False  # so nobody can wait for a message of each iteration

    def __init__(self, parameters: ChoiceParameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self.kept: dict[int, Tensor] = {}

    def outgoing(self, own: LocalGradient) -> Outgoing:
        messages = []
        for peer in self.setup.peers:
            total = own.gradient + self.kept.pop(peer) if peer in self.kept else own.gradient
            if self.setup.links.is_busy(peer):
                self.kept[peer] = total
            else:
                messages.append((peer, self.stretch(own, 0, total)))
        return Outgoing(self.whole(own), messages)

    def lost(self, peer: int) -> None:
        self.kept.pop(peer, None)

    def joined(self, peer: int, iteration: int) -> list[Action]:
        return []  # it has the parameters from a peer, and needs nothing of before


PATIENT = Composition(
    source="an example",
    batching={"kind": "fixed"},
    exchange={"kind": "patient:Patient"},
    synchronization={"kind": "asynchronous"},
    knowledge_transfer={"kind": "none"},
)
