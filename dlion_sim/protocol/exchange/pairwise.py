"""Asynchronous pairwise averaging (AD-PSGD: Lian et al., ICML'18)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from dlion_sim.protocol.choices import Exchange, Setup, register
from dlion_sim.protocol.events import Action, Send
from dlion_sim.protocol.messages import Contribution, MalformedMessageError, Message, Swap
from dlion_sim.protocol.updates import LocalGradient, Outgoing, Update
from dlion_sim.streams import stream


@register("exchange", "pairwise")
class PairwiseExchange(Exchange):
    """After each gradient, average the parameters with one random peer, then take the gradient's step.

    The peer answers at once with its own parameters, whatever it is doing, so that nobody waits for a computation. Each
    side moves by half the difference of what was exchanged: the mean over all workers stays as it is, as with the
    atomic average of the paper. A move is written at the end of the iteration that a worker is in, but counts at once
    in what it answers.
    """

    tells_all = False
    receives = (Swap,)

    def __init__(self, parameters: Exchange.Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._rng = stream(setup.seed, "exchange", setup.worker)
        self._offered: tuple[int, Tensor] | None = None
        """The peer whose answer is still to come, and what was sent to it."""
        self._move = torch.zeros_like(setup.replica.parameters)
        """Agreed upon, still to be written."""

    def ready(self, iteration: int) -> bool:
        """The peer's answer is here."""
        return self._offered is None

    def outgoing(self, own: LocalGradient) -> Outgoing:
        """The parameters to one peer."""
        if not self.setup.peers:
            return Outgoing(self.whole(own), [])
        peer = int(self._rng.choice(self.setup.peers))
        mine = self._now()
        self._offered = peer, mine
        return Outgoing(self.whole(own), [(peer, Message(self.setup.worker, Swap(answer=False), (mine,)))])

    def lost(self, peer: int) -> None:
        """Nobody waits for its answer."""
        if self._offered and self._offered[0] == peer:
            self._offered = None

    def received(self, message: Message) -> list[Action]:
        """A peer's parameters, as an answer or to be answered."""
        assert isinstance(message.body, Swap)
        theirs = message.tensors[0]
        if message.body.answer:
            if self._offered is None or self._offered[0] != message.sender:
                raise MalformedMessageError("an answer that nobody has asked for")
            self._move += (theirs - self._offered[1]) / 2
            self._offered = None
            return []
        mine = self._now()
        self._move += (theirs - mine) / 2
        return [Send(message.sender, Message(self.setup.worker, Swap(answer=True), (mine,)))]

    def apply(self, own: Update, received: Sequence[Update], factor: Callable[[Contribution], float]) -> None:
        """Move as agreed, then take the own gradient's step."""
        self.setup.replica.write(0, self._now())
        self._move.zero_()
        self.setup.replica.step(own.tensors[0])

    def _now(self) -> Tensor:
        """The parameters [P] with all moves agreed upon."""
        return self.setup.replica.parameters + self._move
