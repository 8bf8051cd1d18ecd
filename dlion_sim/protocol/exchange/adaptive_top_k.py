"""Top-k with error feedback, whose density follows what links carry."""

from __future__ import annotations

import math

from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.exchange.compressed import Density, TopKExchange, largest
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import SPARSE_ENTRY_BYTES, LocalGradient, Outgoing


@register("exchange", "adaptive_top_k")
class AdaptiveTopKExchange(TopKExchange):
    """The largest entries, as many as take `link_share` of an iteration on the slowest link (dlion_sim's).

    What is left over, and so the error of late updates, grows with the inverse of the density (Karimireddy et al.,
    ICML'19): more entries are better, as long as they arrive in time. With a share s of a link in use, each
    message waits for s / (2 (1 - s)) others on average (M/D/1): half a one at 0.5, and ever more beyond.
    """

    class Parameters(TopKExchange.Parameters):
        """The part to send."""

        density: Density = Field(0.0003, description="Smallest part of all entries that is sent.")
        most: Density = Field(0.01, description="Largest part of all entries that is sent.")
        link_share: float = Field(
            0.5, gt=0, le=1, description="Part of what the slowest link carries while a gradient is computed."
        )
        budget: float | None = Field(
            None,
            gt=0,
            description="Bytes per second that may be sent to each peer, on average; by default any number.",
        )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._allowed = math.inf if parameters.budget is None else 0.0
        """Entries that the budget has left at the last gradient."""
        self._time: float | None = None
        """Of that one; it has been saved up for since this worker's first gradient began."""

    def outgoing(self, own: LocalGradient) -> Outgoing:
        before = own.time - own.seconds if self._time is None else self._time
        self._allowed += (self.parameters.budget or 0.0) / SPARSE_ENTRY_BYTES * (own.time - before)
        self._time = own.time
        return super().outgoing(own)

    def _choose(self, count: int) -> Tensor:
        chosen, links = self.parameters, self.setup.links
        carried = min(links.carried(links.peers), default=0.0) / SPARSE_ENTRY_BYTES
        most = min(round(chosen.most * self._residual.numel()), round(chosen.link_share * carried))
        count = int(min(max(count, most), max(1.0, self._allowed)))
        self._allowed -= count
        return largest(self._residual, count)


# The best of what was composed, by validation accuracy in environments other than those that it is tested in.
SYSTEMS["dlion_sparse"] = Composition(
    "dlion_sim: DLion's batches, and the largest of what peers lack",
    batching={"kind": "weighted_dynamic", "weights": "share", "growth": "none"},
    exchange={"kind": "adaptive_top_k"},
    synchronization={"kind": "bounded_staleness", "staleness": 5},
)
