"""Per-link prioritized gradient exchange (DLion, HPDC'21): on each link the largest N of Max-N that it can carry."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, LocalGradient, Setup, register
from dlion_sim.protocol.exchange.links import LinkMonitor
from dlion_sim.protocol.exchange.selection import budget_thresholds, normalised_magnitudes, selected
from dlion_sim.protocol.messages import Gradient, Message

SPARSE_ENTRY_BYTES = 8
"""An int32 index and a float32 value."""
DENSE_ENTRY_BYTES = 4
HEADER_BYTES = 64
"""More than the header of any gradient message."""


@register("exchange", "max_n")
class MaxNExchange(Exchange):
    """As much of the most important gradient as each link can carry in an iteration; the rest is dropped.

    Transmission-speed assurance: the payload fits the link's budget (see `LinkMonitor`). Data-quality assurance: N is
    never below `n_min`, whatever the budget. A payload that sparse coding would make no smaller goes dense, whole.
    """

    class Parameters(ChoiceParameters):
        """Defaults: recalled from the paper where the field says so, chosen here otherwise."""

        n_min: float = Field(
            0.85, ge=0, le=100, description="Least N, in percent (the value is recalled; its unit is not certain)."
        )
        bandwidth_smoothing: float = Field(
            0.3, gt=0, le=1, description="Weight of the newest value in the averages of bandwidth and iteration time."
        )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self.links = LinkMonitor(parameters.bandwidth_smoothing)

    def queued(self, peer: int, size: int) -> None:
        """Known to the link monitor."""
        self.links.queued(peer, size)

    def sent(self, peer: int, size: int, seconds: float) -> None:
        """Known to the link monitor."""
        self.links.sent(peer, size, seconds)

    def outgoing(self, own: LocalGradient) -> Iterator[tuple[int, Message]]:
        """A message for every peer, since a message is also the sign that an iteration is done."""
        self.links.computed(own.seconds)
        entries = own.gradient.numel()
        budgets = {peer: self.links.budget(peer) - HEADER_BYTES for peer in self.setup.peers}
        dense = [peer for peer, budget in budgets.items() if budget >= DENSE_ENTRY_BYTES * entries]
        yield from ((peer, self._dense(own)) for peer in dense)
        sparse = [peer for peer in self.setup.peers if peer not in dense]
        if not sparse:
            return
        ratios = normalised_magnitudes(own.gradient, self.setup.replica.layout)
        floor = 1.0 - self.parameters.n_min / 100
        counts = [int(max(0.0, budgets[peer]) // SPARSE_ENTRY_BYTES) for peer in sparse]
        messages: dict[float, Message] = {}
        for peer, threshold in zip(sparse, budget_thresholds(ratios, counts), strict=True):
            threshold = min(threshold, floor)
            if threshold not in messages:
                messages[threshold] = self._selected(own, ratios, threshold)
            yield peer, messages[threshold]

    def _selected(self, own: LocalGradient, ratios: Tensor, threshold: float) -> Message:
        indices = selected(ratios, threshold)
        if SPARSE_ENTRY_BYTES * indices.numel() >= DENSE_ENTRY_BYTES * ratios.numel():
            return self._dense(own)
        body = Gradient(own.iteration, own.batch_size, n_percent=100 * (1 - threshold))
        return Message(self.setup.worker, body, (indices, own.gradient.index_select(0, indices)))

    def _dense(self, own: LocalGradient) -> Message:
        return Message(self.setup.worker, Gradient(own.iteration, own.batch_size, n_percent=100.0), (own.gradient,))
