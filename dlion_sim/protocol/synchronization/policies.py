"""When a worker may end an iteration: the policies of `synch_training` (DLion, HPDC'21)."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from dlion_sim.protocol.choices import ChoiceParameters, Synchronization, register


@register("synchronization", "bounded_staleness")
class BoundedStaleness(Synchronization):
    """Go on while no peer is known to be more than `staleness` iterations behind."""

    class Parameters(ChoiceParameters):
        """The bound."""

        staleness: int = Field(5, ge=0, description="Iterations that a peer may lag behind.")

    parameters: Parameters

    def may_step(self, iteration: int, newest: Mapping[int, int]) -> bool:
        """Every peer's gradient of at least `iteration - staleness` is here."""
        return all(tag >= iteration - self.parameters.staleness for tag in newest.values())

    def applies(self, tag: int, iteration: int) -> bool:
        """Gradients of further ahead than the bound wait, so that a bound of 0 is synchronous training."""
        return tag <= iteration + self.parameters.staleness


@register("synchronization", "synchronous")
class Synchronous(Synchronization):
    """End an iteration with all gradients of it, and no others."""

    def may_step(self, iteration: int, newest: Mapping[int, int]) -> bool:
        """Every peer's gradient of `iteration` is here."""
        return all(tag >= iteration for tag in newest.values())

    def applies(self, tag: int, iteration: int) -> bool:
        """A faster peer's next gradient waits."""
        return tag <= iteration


@register("synchronization", "asynchronous")
class Asynchronous(Synchronization):
    """Never wait; apply what is here."""

    def may_step(self, iteration: int, newest: Mapping[int, int]) -> bool:
        """Always."""
        return True

    def applies(self, tag: int, iteration: int) -> bool:
        """Always."""
        return True
