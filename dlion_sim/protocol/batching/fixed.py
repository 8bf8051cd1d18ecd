"""Every worker computes on as many samples as at the start, and every gradient weighs the same."""

from __future__ import annotations

from dlion_sim.protocol.choices import Batching
from dlion_sim.protocol.messages import Contribution
from dlion_sim.protocol.registry import register


@register("batching", "fixed")
class FixedBatching(Batching):
    """Fixed, equal local batches: Baseline, Ako, Gaia and Hop as DLion was compared with them."""

    def batch_size(self, iteration: int) -> int:
        """The same at each iteration."""
        return self.setup.batch_size

    def global_batch_size(self, iteration: int) -> int:
        """The same at each iteration."""
        return self.setup.batch_size * self.setup.workers

    def weight(self, gradient: Contribution, own_batch_size: int) -> float:
        """Equal batches, equal weights."""
        return 1.0
