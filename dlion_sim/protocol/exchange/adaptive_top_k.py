"""Top-k with error feedback, whose density follows what is left over and what links carry."""

from __future__ import annotations

import math

from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.exchange.compressed import Density, TopKExchange, largest
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import SPARSE_ENTRY_BYTES, LocalGradient, Outgoing

_SMOOTHING = 0.1
"""Weight of the last gradient in the mean of squared norms."""
_UTILIZATION = 0.5
"""Largest part of a link's capacity that is used: beyond it messages wait for earlier ones, and updates come late."""


@register("exchange", "adaptive_top_k")
class AdaptiveTopKExchange(TopKExchange):
    """The largest entries, as many as bound what repeats in what is left over (dlion_sim's).

    Of gradients of squared norm g^2 that are independent of each other, entries of a mean age a leave a residual of
    squared norm I = a g^2; a part of squared norm b^2 that all gradients share adds b^2 a^2. Of skewed data, peers lack
    it, which error feedback delays and then applies at once (Karimireddy et al., ICML'19). In a residual of
    squared norm R it is q = (R - I) / I = b^2 a / g^2 times the rest. It is `repeated` times the rest at the age
    a `repeated` / q, and so with half the inverse of that as density. No more is sent than half of what a link carries
    while a gradient is computed. Sahu et al. (NeurIPS'21) bound the residual, too.
    """

    class Parameters(TopKExchange.Parameters):
        """The part to send."""

        density: Density = Field(0.0003, description="Smallest part of all entries that is sent.")
        most: Density = Field(0.01, description="Largest part of all entries that is sent.")
        repeated: float = Field(
            4.0, gt=0, description="Squared norm of what repeats in the residual, as a multiple of the rest's."
        )
        link_share: float = Field(
            0.05,
            gt=0,
            le=1,
            description="Part of the slowest link's capacity that is used in any case, up to `most`.",
        )
        budget: float | None = Field(
            None,
            gt=0,
            description="Bytes per second that may be sent to each peer, on average; by default any number.",
        )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._squared_norm: float | None = None
        self._independent = 0.0
        """Squared norm that the residual would have if gradients were independent of each other."""
        self._allowed, self._time = math.inf if parameters.budget is None else 0.0, 0.0
        """Entries that the budget has left at that time."""

    def outgoing(self, own: LocalGradient) -> Outgoing:
        squared, mean = float(own.gradient.square().sum()), self._squared_norm
        self._squared_norm = squared if mean is None else mean + _SMOOTHING * (squared - mean)
        self._independent += squared
        self._allowed += (self.parameters.budget or 0.0) / SPARSE_ENTRY_BYTES * (own.time - self._time)
        self._time = own.time
        return super().outgoing(own)

    def _choose(self, count: int) -> Tensor:
        chosen, links, size = self.parameters, self.setup.links, self._residual.numel()
        allowed = max(1.0, self._allowed)
        count = int(min(count, allowed))
        carried = min(links.carried(links.peers), default=0.0) / SPARSE_ENTRY_BYTES
        most = max(count, int(min(round(chosen.most * size), _UTILIZATION * carried, allowed)))
        least = min(most, max(count, round(chosen.link_share * carried)))
        whole = float(self._residual.square().sum())
        density = self._density(whole - self._independent)
        used = max(least, min(most, round(density * size)))
        indices = largest(self._residual, used)
        if whole > 0:
            self._independent *= 1 - float(self._residual.index_select(0, indices).square().sum()) / whole
        self._allowed -= used
        return indices

    def _density(self, repeated: float) -> float:
        """The density at which the residual's repeated part, now of that squared norm, is as large as it may be."""
        if repeated <= 0 or self._independent <= 0:
            return 0.0
        ratio = repeated / self._independent
        return min(1.0, ratio / self.parameters.repeated * (self._squared_norm or 0.0) / (2 * self._independent))


# The best of what was composed, by validation accuracy in environments other than those that it is tested in.
SYSTEMS["dlion_sparse"] = Composition(
    "dlion_sim: DLion's batches, and the largest of what peers lack",
    batching={"kind": "weighted_dynamic", "weights": "share", "growth": "none"},
    exchange={"kind": "adaptive_top_k"},
    synchronization={"kind": "bounded_staleness", "staleness": 5},
)
