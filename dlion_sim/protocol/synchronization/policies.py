"""When a worker may end an iteration: the policies of `synch_training` (DLion, HPDC'21)."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from dlion_sim.protocol.choices import ChoiceParameters, Due, Peer, Synchronization, register


@register("synchronization", "synchronous")
class Synchronous(Synchronization):
    """End an iteration with all gradients of it, and no others."""

    def may_step(self, iteration: int, peers: Iterable[Peer]) -> bool:
        """Every peer's gradient of `iteration` is here."""
        return all(peer.newest >= iteration for peer in peers)

    def due(self, tag: int, iteration: int) -> Due:
        """A faster peer's next gradient waits."""
        return "now" if tag <= iteration else "later"


@register("synchronization", "bounded_staleness")
class BoundedStaleness(Synchronization):
    """Go on while no peer, but for some backup workers, is known to be more than `staleness` iterations behind."""

    class Parameters(ChoiceParameters):
        """The bound."""

        staleness: int = Field(5, ge=0, description="Iterations that a peer may lag behind.")
        backup_workers: int = Field(0, ge=0, description="Peers that nobody waits for: whichever are last.")

    parameters: Parameters

    def may_step(self, iteration: int, peers: Iterable[Peer]) -> bool:
        """A gradient of at least `iteration - staleness` is here, of every peer but for the backup workers."""
        behind = sum(peer.newest < iteration - self.parameters.staleness for peer in peers)
        return behind <= self.parameters.backup_workers

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
            2, ge=1, description="Messages that may be queued on a link; a worker faster than its links waits for them."
        )

    parameters: Parameters

    def may_step(self, iteration: int, peers: Iterable[Peer]) -> bool:
        """No link holds more than its buffer does."""
        return all(peer.outstanding <= self.parameters.send_buffer for peer in peers)

    def due(self, tag: int, iteration: int) -> Due:
        """At once."""
        return "now"
