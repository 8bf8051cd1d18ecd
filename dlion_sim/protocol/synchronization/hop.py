"""Hop's synchronization (Luo et al., ASPLOS'19): backup workers, bounded staleness, and token queues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from dlion_sim.protocol.choices import Due, Peer, Setup, register
from dlion_sim.protocol.events import Action, Send
from dlion_sim.protocol.messages import Message, Token
from dlion_sim.protocol.synchronization.policies import BoundedStaleness


@register("synchronization", "hop")
class HopSynchronization(BoundedStaleness):
    """Backup workers and bounded staleness, with the lead over every peer held down by tokens.

    Each worker keeps a queue of tokens from each peer, at first `max_gap` long. A peer that begins an iteration, but
    for the first, sends one token to everyone; a worker that begins one takes one from each queue, and waits while one
    is empty. So a queue holds Iter(peer) - Iter(worker) + max_gap tokens, and nobody leads a peer by more than max_gap.
    """

    class Parameters(BoundedStaleness.Parameters):
        """Defaults: recalled from DLion's comparison, where they are not certain; max_gap is chosen here."""

        backup_workers: int = Field(1, ge=0, description="Peers that nobody waits for: whichever are last.")
        max_gap: int | None = Field(
            None, ge=1, description="Iterations that a worker may lead any peer by; by default tokens are not used."
        )
        late: Literal["apply", "drop"] = Field(
            "apply", description="Gradients that come after their iteration ended are applied, or dropped."
        )

    parameters: Parameters
    receives = (Token,)

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self.tokens = dict.fromkeys(setup.peers, parameters.max_gap or 0)

    def may_step(self, iteration: int, peers: Iterable[Peer]) -> bool:
        """Enough gradients are here, and a token from each peer for the next iteration."""
        if self.parameters.max_gap is not None and not all(self.tokens.values()):
            return False
        return super().may_step(iteration, peers)

    def due(self, tag: int, iteration: int) -> Due:
        """Late gradients may be dropped: those too old for the staleness bound."""
        if self.parameters.late == "drop" and tag < iteration - self.parameters.staleness:
            return "never"
        return super().due(tag, iteration)

    def entered(self, iteration: int) -> list[Action]:
        """Take a token from each peer and give each one; not in the first iteration."""
        if self.parameters.max_gap is None or iteration == 0:
            return []
        for peer in self.tokens:
            self.tokens[peer] -= 1
        token = Message(self.setup.worker, Token())
        return [Send(peer, token) for peer in self.setup.peers]

    def received(self, message: Message) -> list[Action]:
        """A token."""
        self.tokens[message.sender] += 1
        return []
