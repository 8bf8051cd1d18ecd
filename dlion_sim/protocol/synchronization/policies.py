"""The synchronization policies of `synch_training` (DLion, HPDC'21), and Hop's (Luo et al., ASPLOS'19)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

import msgspec
from pydantic import Field, model_validator

from dlion_sim.protocol.choices import ChoiceParameters, Due, Peer, Setup, Synchronization
from dlion_sim.protocol.events import Action, Send
from dlion_sim.protocol.messages import Body, Message
from dlion_sim.protocol.registry import SYSTEMS, Composition, register


@register("synchronization", "synchronous")
class Synchronous(Synchronization):
    """End an iteration when all gradients of it have arrived, and apply no others."""

    @classmethod
    def lag(cls, parameters: ChoiceParameters) -> int:
        return 0

    def waits_for(self, peer: Peer, iteration: int) -> bool:
        return peer.newest < iteration

    def due(self, tag: int, iteration: int) -> Due:
        """A faster peer's next gradient is kept."""
        return "now" if tag <= iteration else "later"

    def lost(self, peer: int) -> str:
        return "synchronous training waits for every peer"

    def joined(self, peer: int, iteration: int) -> list[Action]:
        return []


@register("synchronization", "bounded_staleness")
class BoundedStaleness(Synchronization):
    """End an iteration if no peer, apart from backup workers, is more than `staleness` iterations behind.

    A lost peer counts as a backup worker until it returns, unless `on_loss` is to wait for it.
    """

    class Parameters(ChoiceParameters):
        """The bound."""

        staleness: int = Field(5, ge=0, description="Iterations that a peer may lag behind.")
        backup_workers: int = Field(
            0, ge=0, description="Peers that need not be waited for, the last ones of each iteration."
        )

    parameters: Parameters

    @classmethod
    def lag(cls, parameters: Parameters) -> int:
        return parameters.staleness

    @property
    def spare_peers(self) -> int:
        """The backup workers, less the lost peers."""
        away = 0 if self.setup.on_loss == "wait" else self._away
        return max(0, self.parameters.backup_workers - away)

    def waits_for(self, peer: Peer, iteration: int) -> bool:
        return peer.newest < iteration - self.parameters.staleness

    def lost(self, peer: int) -> str | None:
        """Tolerated if there is a backup worker for each lost peer."""
        if self._away <= self.parameters.backup_workers:
            return None
        return f"more peers are lost ({self._away}) than there are backup workers ({self.parameters.backup_workers})"

    def joined(self, peer: int, iteration: int) -> list[Action]:
        return []

    @property
    def _away(self) -> int:
        """How many peers are lost or have not joined yet."""
        return len(self.setup.mixing) - len(self.setup.peers)

    def due(self, tag: int, iteration: int) -> Due:
        """Gradients from beyond the bound are kept, so that a bound of 0 is synchronous training."""
        return "now" if tag <= iteration + self.parameters.staleness else "later"


@register("synchronization", "asynchronous")
class Asynchronous(Synchronization):
    """Never wait for peers' gradients: apply those that have arrived. Wait only for links whose send buffer is full."""

    waits_for_peers = False

    class Parameters(ChoiceParameters):
        """The buffer."""

        send_buffer: int = Field(
            2,
            ge=0,
            description="Messages that may be queued on a link. 0: wait until the own have left, as in TF.AKO's code.",
        )

    parameters: Parameters

    def waits_for(self, peer: Peer, iteration: int) -> bool:
        return self.setup.links.messages(peer.number) > self.parameters.send_buffer

    def due(self, tag: int, iteration: int) -> Due:
        return "now"


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
