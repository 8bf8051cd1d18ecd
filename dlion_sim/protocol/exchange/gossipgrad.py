"""Gradients averaged with one partner at a time (GossipGraD: Daily et al., 2018, arXiv:1803.05880)."""

from __future__ import annotations

from functools import lru_cache

from dlion_sim.protocol.choices import Exchange
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing
from dlion_sim.streams import stream


@register("exchange", "gossipgrad")
class GossipGradientExchange(Exchange):
    """g_i <- (g_i + g_j) / 2 for the step, with another j in each iteration.

    Workers stand in a virtual circle, and in iteration k of a period each sends to the one at distance 2^k: after a
    period of ceil(log2 n) iterations, gradients of all have reached all. The circle is shuffled for each period. A
    worker whose partner is not there steps by its own gradient. Half of each step is a worker's own gradient, so where
    data differ parameters drift apart: the paper passes samples on between workers, which here stay where they are.
    """

    needs_everyone = True
    joins_with_state = True

    def senders(self, tag: int) -> tuple[int, ...]:
        return () if tag < 0 or self.setup.workers == 1 else (self._partner(tag, -1),)

    def outgoing(self, own: LocalGradient) -> Outgoing:
        update = self.whole(own)
        partner = self._partner(own.iteration, 1) if self.setup.peers else None
        return Outgoing(update, [(partner, update)] if partner in self.setup.peers else [])

    def apply(self, incoming: Incoming) -> int:
        terms = [(update, 1 / len(incoming.updates)) for update in incoming.updates]
        mean = self.setup.sums.of(terms, self.setup.replica.layout.size)
        self.setup.replica.step(mean)
        return len(incoming.received)

    def _partner(self, iteration: int, direction: int) -> int:
        """The worker ahead (1) or behind (-1) in the circle."""
        workers = self.setup.workers
        period, exponent = divmod(iteration, (workers - 1).bit_length())
        circle = _circle(self.setup.seed, period, workers)
        return circle[(circle.index(self.setup.worker) + direction * (1 << exponent)) % workers]


@lru_cache(maxsize=16)
def _circle(seed: int, period: int, workers: int) -> tuple[int, ...]:
    """The workers in the order of a period's circle: drawing it takes longer than the rest of an iteration."""
    return tuple(stream(seed, "gossipgrad", period).permutation(workers).tolist())


SYSTEMS["gossipgrad"] = Composition("Daily et al., 2018", exchange={"kind": "gossipgrad"})
