"""The synchronization policies of `synch_training` (DLion, HPDC'21)."""

from __future__ import annotations

from pydantic import Field

from dlion_sim.protocol.choices import ChoiceParameters, Due, Peer, Synchronization
from dlion_sim.protocol.events import Action
from dlion_sim.protocol.registry import register


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
