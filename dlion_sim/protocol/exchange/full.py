"""The whole gradient to everyone."""

from __future__ import annotations

from dlion_sim.protocol.choices import Exchange
from dlion_sim.protocol.registry import register
from dlion_sim.protocol.updates import LocalGradient, Outgoing


@register("exchange", "full")
class FullExchange(Exchange):
    """Every gradient, whole, to every peer: Baseline."""

    def outgoing(self, own: LocalGradient) -> Outgoing:
        """One message, shared by all peers."""
        whole = self.whole(own)
        return Outgoing(whole, self.to_all(whole))
