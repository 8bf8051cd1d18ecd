"""Asynchronous pairwise averaging (AD-PSGD: Lian et al., ICML'18)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from dlion_sim.protocol.choices import Exchange, Setup
from dlion_sim.protocol.events import Action, Send
from dlion_sim.protocol.messages import Body, Channel, MalformedMessageError, Message, Shapes, Stage, is_whole
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing
from dlion_sim.scenario.system import Bipartite

ACTIVE = 0
"""The side whose workers ask."""


class Swap(Body, frozen=True, array_like=True):
    """The sender's parameters (values [P]) to average with the receiver's, which come as the `answer`."""

    kind: ClassVar[str] = "swap"
    channel: ClassVar[Channel] = Channel.DATA
    stage: ClassVar[Stage | None] = "mix"
    answer: bool

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return is_whole(shapes, parameters)


@register("exchange", "pairwise")
class PairwiseExchange(Exchange):
    """Average the parameters with one random peer while a gradient is computed, then take the gradient's step.

    The graph is bipartite. Workers on one side are active: each asks a peer when it begins an iteration, which ends
    with the answer. The others are passive: they answer at once, in any phase, and never ask. So no parameters are
    averaged twice at a time, and both sides end up with the mean of the two, as with the paper's atomic average: the
    mean over all workers stays constant and their disagreement shrinks, however long messages take. (If workers
    answered while they wait for an answer, two that ask each other would swap parameters.)

    An average is written at the end of the iteration that a worker is in, as a gradient is being computed on its
    parameters; but it counts at once in what a passive worker answers.
    """

    sends_every_iteration = False
    needs_sides = True
    receives = (Swap,)

    def __init__(self, parameters: Exchange.Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._rng = setup.stream("exchange")
        self._partners = set(setup.peers)
        """Members; a joining worker would average parameters that it does not have yet."""
        self._asked: tuple[int, Tensor] | None = None
        """The peer whose answer is still to come, and what was sent to it."""
        self._move = torch.zeros_like(setup.replica.parameters)
        """The change of the parameters by averages, still to be written."""
        self._averages = 0
        """The number of averages in that change."""
        self._is_computing = False

    def ready(self, iteration: int) -> bool:
        return self._asked is None

    def began(self, iteration: int, batch_size: int) -> Sequence[tuple[int, Message]]:
        self._is_computing = True
        if self.setup.side != ACTIVE or not self._partners:
            return []
        peer = int(self._rng.choice(sorted(self._partners)))
        mine = self.setup.replica.snapshot()
        self._asked = peer, mine
        return [(peer, Message(self.setup.worker, Swap(answer=False), (mine,)))]

    def outgoing(self, own: LocalGradient) -> Outgoing:
        """Nothing more to send; the own gradient stays here."""
        return Outgoing(self.whole(own), [])

    def lost(self, peer: int) -> None:
        self._partners.discard(peer)
        if self._asked and self._asked[0] == peer:
            self._asked = None

    def joined(self, peer: int, iteration: int) -> list[Action]:
        self._partners.add(peer)
        return []

    def received(self, message: Message) -> list[Action]:
        assert isinstance(message.body, Swap)
        if message.body.answer:
            if self._asked is None or self._asked[0] != message.sender:
                raise MalformedMessageError("an answer that was not requested")
            mine, self._asked = self._asked[1], None
            self._average(mine, message.tensors[0])
            return []
        if self.setup.side == ACTIVE:
            raise MalformedMessageError("a question to an active worker, which only asks")
        mine = self.setup.replica.parameters + self._move
        self._average(mine, message.tensors[0])
        return [Send(message.sender, Message(self.setup.worker, Swap(answer=True), (mine,)))]

    def apply(self, incoming: Incoming) -> int:
        self._is_computing = False
        averages = self._write()
        assert incoming.own is not None
        self.setup.replica.step(incoming.own.tensors[0])
        return averages

    def _average(self, mine: Tensor, theirs: Tensor) -> None:
        self._move += (theirs - mine) / 2
        self._averages += 1
        if not self._is_computing:  # The worker has ended its last iteration: there will be no other time.
            self._write()

    def _write(self) -> int:
        averages, self._averages = self._averages, 0
        if averages:
            self.setup.replica.write(0, self.setup.replica.parameters + self._move)
            self._move.zero_()
        return averages


SYSTEMS["adpsgd"] = Composition(
    "Lian et al., ICML'18",
    exchange={"kind": "pairwise"},
    synchronization={"kind": "asynchronous"},
    topology=Bipartite(),
)
