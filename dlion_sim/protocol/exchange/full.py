"""The whole gradient to everyone."""

from __future__ import annotations

from collections.abc import Iterator

from dlion_sim.protocol.choices import Exchange, LocalGradient, register
from dlion_sim.protocol.messages import Gradient, Message


@register("exchange", "full")
class FullExchange(Exchange):
    """Every gradient, dense, to every peer: Baseline."""

    def outgoing(self, own: LocalGradient) -> Iterator[tuple[int, Message]]:
        """One message, shared by all peers."""
        message = Message(self.setup.worker, Gradient(own.iteration, own.batch_size, n_percent=100.0), (own.gradient,))
        for peer in self.setup.peers:
            yield peer, message
