"""Hop's synchronization (Luo et al., ASPLOS'19): backup workers, bounded staleness, and token queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

import msgspec
from pydantic import Field, model_validator

from dlion_sim.protocol.choices import Due, Setup
from dlion_sim.protocol.events import Action, Send
from dlion_sim.protocol.messages import Body, Message
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.synchronization.policies import BoundedStaleness


class Token(Body, frozen=True, array_like=True):
    """The receiver may begin `count` iterations more."""

    kind: ClassVar[str] = "token"
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


@register("synchronization", "hop")
class HopSynchronization(BoundedStaleness):
    """Backup workers and bounded staleness; tokens limit the lead over every peer.

    Each worker keeps a queue of tokens from each peer, at first `max_gap` long. A peer that begins an iteration, but
    for the first, sends one token to each peer; a worker that begins one takes one from each queue, and waits while one
    is empty. So a queue holds Iter(peer) - Iter(worker) + max_gap tokens, and no worker leads a peer by more than
    max_gap. On a new connection, each sends a token for each iteration begun, and its own queue begins with as many
    fewer.
    """

    class Parameters(BoundedStaleness.Parameters):
        """Defaults: recalled from DLion's comparison, where they are not certain; max_gap is chosen here."""

        backup_workers: int = Field(
            1, ge=0, description="Peers that need not be waited for, the last ones of each iteration."
        )
        max_gap: int | None = Field(
            None, ge=1, description="Iterations that a worker may lead any peer by. By default no tokens are used."
        )
        skip_from: int | None = Field(
            None,
            ge=1,
            description="Lag behind all peers at which a worker skips iterations (needs max_gap). By default never.",
        )
        max_jump: int = Field(10, ge=1, description="Iterations skipped at a time.")
        late: Literal["apply", "drop"] = Field(
            "apply", description="Gradients that arrive after their iteration are applied or dropped."
        )

        @model_validator(mode="after")
        def _lag_is_known(self) -> Self:
            if self.skip_from is not None and self.max_gap is None:
                raise ValueError("skip_from needs max_gap: a worker's lag is known from its tokens")
            return self

    parameters: Parameters
    receives = (Token,)

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self.tokens = dict.fromkeys(setup.peers, parameters.max_gap or 0)
        self._entered = 0

    def ready(self, iteration: int) -> bool:
        return self.parameters.max_gap is None or all(count > 0 for count in self.tokens.values())

    def due(self, tag: int, iteration: int) -> Due:
        """Late gradients may be dropped: those too old for the staleness bound."""
        if self.parameters.late == "drop" and tag < iteration - self.parameters.staleness:
            return "never"
        return super().due(tag, iteration)

    def skipped(self, iteration: int) -> int:
        """A straggler's lag is the least number of tokens of a peer beyond the first ones."""
        if self.parameters.skip_from is None or self.parameters.max_gap is None or not self.tokens:
            return 0
        lag = min(self.tokens.values()) - self.parameters.max_gap - 1
        return min(lag, self.parameters.max_jump) if lag >= self.parameters.skip_from else 0

    def entered(self, iteration: int) -> list[Action]:
        """Take a token from each peer and send each one, for every iteration begun or skipped; not for the first."""
        count, self._entered = iteration - self._entered, iteration
        if self.parameters.max_gap is None or not count:
            return []
        for peer in self.tokens:
            self.tokens[peer] -= count
        return self._send_tokens(count, [peer for peer in self.setup.peers if peer in self.tokens])

    def lost(self, peer: int) -> str | None:
        self.tokens.pop(peer, None)
        return super().lost(peer)

    def joined(self, peer: int, iteration: int) -> list[Action]:
        self.tokens[peer] = (self.parameters.max_gap or 0) - self._entered
        return self._send_tokens(self._entered, [peer]) if self._entered and self.parameters.max_gap is not None else []

    def _send_tokens(self, count: int, peers: Sequence[int]) -> list[Action]:
        token = Message(self.setup.worker, Token(count))
        return [Send(peer, token) for peer in peers]

    def received(self, message: Message) -> list[Action]:
        assert isinstance(message.body, Token)
        self.tokens[message.sender] += message.body.count
        return []


# Exchanging gradients, as in DLion's comparison, where the original exchanges parameters.
SYSTEMS["hop"] = Composition("Luo et al., ASPLOS'19", synchronization={"kind": "hop"})
