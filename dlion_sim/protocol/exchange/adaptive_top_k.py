"""Top-k with error feedback, whose density follows what is left over and what links carry."""

from __future__ import annotations

import math

from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.exchange.compressed import Density, TopKExchange, largest
from dlion_sim.protocol.registry import register
from dlion_sim.protocol.updates import SPARSE_ENTRY_BYTES, LocalGradient, Outgoing

_SMOOTHING = 0.1
"""Weight of the last gradient in the mean of squared norms."""


@register("exchange", "adaptive_top_k")
class AdaptiveTopKExchange(TopKExchange):
    """The largest entries, as many as bound what is left over (dlion_sim's).

    With a density d an entry waits 1 / d iterations, so that of gradients g that are independent of each other a
    residual of squared norm |g|^2 / (2 d) is left over: the ages of its entries are 1 / (2 d) on average. It is larger
    where gradients repeat what peers do not send, as with skewed data, and error feedback's error grows with it
    (Karimireddy et al., ICML'19). So as many entries are sent as keep it at that of independent gradients, but no more
    than a link carries while a gradient is computed; a bound on the residual is Sahu et al.'s (NeurIPS'21) too.
    """

    class Parameters(TopKExchange.Parameters):
        """The part to send."""

        density: Density = Field(0.0003, description="Smallest part of all entries that is sent.")
        most: Density = Field(0.01, description="Largest part of all entries that is sent.")
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
        self._allowed, self._time = math.inf if parameters.budget is None else 0.0, 0.0
        """Entries that the budget has left at that time."""

    def outgoing(self, own: LocalGradient) -> Outgoing:
        squared, mean = float(own.gradient.square().sum()), self._squared_norm
        self._squared_norm = squared if mean is None else mean + _SMOOTHING * (squared - mean)
        self._allowed += (self.parameters.budget or 0.0) / SPARSE_ENTRY_BYTES * (own.time - self._time)
        self._time = own.time
        return super().outgoing(own)

    def _choose(self, count: int) -> Tensor:
        chosen, links, size = self.parameters, self.setup.links, self._residual.numel()
        allowed = max(1.0, self._allowed)
        count = int(min(count, allowed))
        carried = int(min(allowed, min(links.carried(links.peers), default=0.0) // SPARSE_ENTRY_BYTES))
        most = max(count, min(round(chosen.most * size), carried))
        least = min(most, max(count, round(chosen.link_share * carried)))
        indices = largest(self._residual, most)
        squares = self._residual.index_select(0, indices).square()
        by_size = squares.argsort(descending=True, stable=True)
        left = self._residual.square().sum() - squares[by_size].cumsum(0)
        bound = (self._squared_norm or 0.0) / (2 * chosen.density)
        needed = int((left > bound).sum()) + 1
        used = max(least, needed)
        self._allowed -= min(used, most)
        return indices[by_size[:used].sort().values]
