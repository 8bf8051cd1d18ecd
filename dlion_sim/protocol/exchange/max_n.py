"""Per-link prioritized gradient exchange (DLion, HPDC'21): on each link the largest N of Max-N that it can carry."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.events import Action
from dlion_sim.protocol.exchange.selection import Ranking, SortedRanking, ranked
from dlion_sim.protocol.link_monitor import Source
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import (
    DENSE_ENTRY_BYTES,
    HEADER_BYTES,
    SPARSE_ENTRY_BYTES,
    LocalGradient,
    Outgoing,
    Update,
    dense_is_smaller,
)

_NOTHING = math.inf
"""The threshold that no entry reaches."""


@register("exchange", "max_n")
class MaxNExchange(Exchange):
    """As much of the most important gradient as each link can carry in an iteration.

    Transmission-speed assurance: the payload fits the link's budget (see `LinkMonitor`). Data-quality assurance: N is
    never below `n_min`, whatever the budget, unless links that cannot carry it are skipped. A payload that sparse
    coding would make no smaller goes dense, whole. The worker itself applies the whole gradient.
    """

    class Parameters(ChoiceParameters):
        """Defaults: recalled from the paper where the field says so, chosen here otherwise."""

        n_min: float = Field(
            0.85, ge=0, le=100, description="Least N, in percent (the value is recalled; its unit is not certain)."
        )
        n: float | None = Field(
            None, ge=0, le=100, description="The N of every link, whatever its bandwidth; by default each has its own."
        )
        below_n_min: Literal["send", "skip"] = Field(
            "send",
            description="What a link gets that cannot carry n_min: n_min, or nothing this time (HotCloud'19; chosen "
            "here).",
        )
        residual: Literal["drop", "accumulate"] = Field(
            "drop",
            description="What a link does not carry is dropped (recalled), or added to the next gradient.",
        )
        bandwidth: Source = Field(
            "measured",
            description="What a link can carry: as measured; or, in simulations, its path's true capacity, alone or "
            "shared with all other links.",
        )
        bandwidth_smoothing: float = Field(
            0.3, gt=0, le=1, description="Weight of the newest value in the averages of bandwidth and iteration time."
        )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self.needs_oracle = parameters.bandwidth != "measured"
        setup.links.follow(parameters.bandwidth, parameters.bandwidth_smoothing)
        self._residuals: dict[int, Tensor] = {}

    def lost(self, peer: int) -> None:
        self._residuals.pop(peer, None)

    def joined(self, peer: int, iteration: int) -> list[Action]:
        """Its state transfer includes the earlier gradients."""
        self._residuals.pop(peer, None)
        return []

    def outgoing(self, own: LocalGradient) -> Outgoing:
        peers = self.setup.peers
        if self.parameters.residual == "drop":
            chosen = self._chosen(own, peers)
        else:
            chosen = {peer: self._with_residual(own, peer) for peer in peers}
        return Outgoing(self.whole(own), [(peer, chosen[peer]) for peer in peers])

    def _with_residual(self, own: LocalGradient, peer: int) -> Update:
        """The entries of its residual that a peer gets."""
        residual = self._residuals.setdefault(peer, torch.zeros_like(own.gradient)).add_(own.gradient)
        update = self._chosen(replace(own, gradient=residual.clone()), [peer])[peer]
        update.add_to(residual, -1.0)
        return update

    def _chosen(self, own: LocalGradient, peers: Sequence[int]) -> Mapping[int, Update]:
        """The entries of a gradient for each peer; peers with the same threshold get the same object."""
        size = own.gradient.numel()
        ranking = ranked(own.gradient, self.setup.replica.layout)
        thresholds = self._thresholds(ranking, own, peers)
        sparse = ranking.selections([threshold for threshold in thresholds if threshold > 0])
        updates = {}
        for threshold in set(thresholds):
            if threshold == 0 or dense_is_smaller(sparse[threshold][0].numel(), size):
                updates[threshold] = self.whole(own, n_percent=100.0)
            else:
                n_percent = 100 * (1 - threshold) if threshold < _NOTHING else 0.0
                updates[threshold] = self.entries(own, *sparse[threshold], n_percent=n_percent)
        return {peer: updates[threshold] for peer, threshold in zip(peers, thresholds, strict=True)}

    def _thresholds(self, ranking: Ranking | SortedRanking, own: LocalGradient, peers: Sequence[int]) -> list[float]:
        if self.parameters.n is not None:
            return [1 - self.parameters.n / 100] * len(peers)
        size = own.gradient.numel()
        budgets = [self.setup.links.budget(peer, own.time) - HEADER_BYTES for peer in peers]
        counts = [
            size if budget >= DENSE_ENTRY_BYTES * size else int(max(0.0, budget) // SPARSE_ENTRY_BYTES)
            for budget in budgets
        ]
        floor = 1 - self.parameters.n_min / 100
        if self.parameters.below_n_min == "skip":
            return [threshold if threshold <= floor else _NOTHING for threshold in ranking.thresholds(counts)]
        return [min(threshold, floor) for threshold in ranking.thresholds(counts)]


# Which synchronization its results used is not known; a bound of 5 works everywhere.
SYSTEMS["dlion"] = Composition(
    "Hong & Chandra, HPDC'21",
    batching={"kind": "weighted_dynamic"},
    exchange={"kind": "max_n"},
    synchronization={"kind": "bounded_staleness", "staleness": 5},
    knowledge_transfer={"kind": "direct"},
)
