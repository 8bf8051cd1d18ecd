"""Servers whose state a worker holds: the base of such exchanges. Messages to oneself take no time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import ClassVar

from torch import Tensor

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.events import Action, Send
from dlion_sim.protocol.messages import Body, Channel, Count, Message, Shapes, Stage, is_one

Sent = list[tuple[int, Message]]
"""(receiver, message) each."""


class Answer(Body, frozen=True, array_like=True):
    """A server's parameters, for the sender of the pseudo-gradient of `iteration`. None may be missing."""

    kind: ClassVar[str] = "answer"
    channel: ClassVar[Channel] = Channel.DATA
    stage: ClassVar[Stage | None] = None
    iteration: Count

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return is_one(shapes, "f4", parameters)


class HostedExchange(Exchange):
    """A server's state is held by its host, the lowest-numbered of its workers that is there.

    If that worker is lost, the next one starts a server from the parameters that it last got, without momentum, and
    the lost one, when it is back, from those that its sponsor last got. A pseudo-gradient whose answer is lost
    with its host is not sent again, so that none counts twice: it is dropped, which is counted.
    """

    needs_everyone = True
    sends_every_iteration = False
    joins_with_state = True

    def __init__(self, parameters: ChoiceParameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self.there = {setup.worker, *setup.peers} - setup.absent
        """The members."""
        self.start = setup.replica.parameters.clone()
        """The parameters [P] that its server last sent, and pseudo-gradients begin with."""
        self.common = (self.start,)
        self._dropped = 0.0

    def host(self, workers: Collection[int]) -> int:
        """The one of these workers that holds their server; this worker is among them."""
        return min(self.there.intersection(workers))

    def lost(self, peer: int) -> None:
        self.there.discard(peer)

    def joined(self, peer: int, iteration: int) -> list[Action]:
        self.there.add(peer)
        return []

    def take_over(self, tensors: Sequence[Tensor]) -> None:
        super().take_over(tensors)
        self.setup.replica.write(0, self.start)

    def drop(self, samples: float) -> None:
        """What was learned from so many samples reaches no other worker."""
        self._dropped += samples

    def dropped(self) -> float:
        dropped, self._dropped = self._dropped, 0.0
        return dropped

    def received(self, message: Message) -> list[Action]:
        self.check(message)
        return [Send(*each) for each in self.take(message)]

    @abstractmethod
    def check(self, message: Message) -> None:
        """Raise MalformedMessageError for a message that no correct worker sends."""

    @abstractmethod
    def take(self, message: Message) -> Sent:
        """Take in a message, of another worker or of this one, and return those that follow."""

    def deliver(self, receiver: int, body: Body, *tensors: Tensor) -> Sent:
        """A message, and what follows at once if it is to this worker; nothing is sent to one that is not there."""
        message = Message(self.setup.worker, body, tensors)
        if receiver == self.setup.worker:
            return self.take(message)
        return [(receiver, message)] if receiver in self.setup.peers else []
