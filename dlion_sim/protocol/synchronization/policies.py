"""When a worker may end an iteration: the policies of `synch_training` (DLion, HPDC'21)."""

from __future__ import annotations

from pydantic import Field

from dlion_sim.protocol.choices import ChoiceParameters, Due, Peer, Synchronization
from dlion_sim.protocol.events import Action
from dlion_sim.protocol.registry import register


@register("synchronization", "synchronous")
class Synchronous(Synchronization):
    """End an iteration with all gradients of it, and no others."""

    @classmethod
    def lag(cls, parameters: ChoiceParameters) -> int:
        """None may be."""
        return 0

    def waits_for(self, peer: Peer, iteration: int) -> bool:
        """For its gradient of `iteration`."""
        return peer.newest < iteration

    def due(self, tag: int, iteration: int) -> Due:
        """A faster peer's next gradient waits."""
        return "now" if tag <= iteration else "later"

    def lost(self, peer: int) -> str:
        """There is no mean over all any more."""
        return "synchronous training waits for every peer"

    def joined(self, peer: int, iteration: int) -> list[Action]:
        """There is one over more."""
        return []


@register("synchronization", "bounded_staleness")
class BoundedStaleness(Synchronization):
    """Go on while no peer, but for some backup workers, is known to be more than `staleness` iterations behind.

    A lost peer takes the place of a backup worker while it is away, unless it is waited for.
    """

    class Parameters(ChoiceParameters):
        """The bound."""

        staleness: int = Field(5, ge=0, description="Iterations that a peer may lag behind.")
        backup_workers: int = Field(0, ge=0, description="Peers that nobody waits for: whichever are last.")

    parameters: Parameters

    @classmethod
    def lag(cls, parameters: Parameters) -> int:
        """The bound."""
        return parameters.staleness

    @property
    def spared(self) -> int:
        """The backup workers that are there."""
        away = 0 if self.setup.on_loss == "wait" else self._away
        return max(0, self.parameters.backup_workers - away)

    def waits_for(self, peer: Peer, iteration: int) -> bool:
        """For a gradient of at least `iteration - staleness`."""
        return peer.newest < iteration - self.parameters.staleness

    def lost(self, peer: int) -> str | None:
        """Tolerated as long as there is a backup worker for each."""
        if self._away <= self.parameters.backup_workers:
            return None
        return f"more peers are lost ({self._away}) than there are backup workers ({self.parameters.backup_workers})"

    def joined(self, peer: int, iteration: int) -> list[Action]:
        """One more backup worker, if some were lost."""
        return []

    @property
    def _away(self) -> int:
        """How many peers are lost, or have not come yet."""
        return len(self.setup.mixing) - len(self.setup.peers)

    def due(self, tag: int, iteration: int) -> Due:
        """Gradients of further ahead than the bound wait, so that a bound of 0 is synchronous training."""
        return "now" if tag <= iteration + self.parameters.staleness else "later"


@register("synchronization", "asynchronous")
class Asynchronous(Synchronization):
    """Never wait for a peer's gradient; apply what is here. But wait for a link whose send buffer is full."""

    waits_for_peers = False

    class Parameters(ChoiceParameters):
        """The buffer."""

        send_buffer: int = Field(
            2,
            ge=0,
            description="Messages that may be queued on a link; a worker faster than its links waits for them. 0: for "
            "its own to have left, in each iteration, as in TF.AKO's code.",
        )

    parameters: Parameters

    def waits_for(self, peer: Peer, iteration: int) -> bool:
        """For its link to hold no more than its buffer does."""
        return self.setup.links.messages(peer.number) > self.parameters.send_buffer

    def due(self, tag: int, iteration: int) -> Due:
        return "now"
