"""Accumulated partial gradients, a partition an iteration in turn (Ako: Watcharapichat et al., SoCC'16)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

import torch
from pydantic import BeforeValidator, Field

from dlion_sim.errors import InputError
from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup, register
from dlion_sim.protocol.exchange.links import LinkMonitor
from dlion_sim.protocol.exchange.sizes import DENSE_ENTRY_BYTES
from dlion_sim.protocol.updates import LocalGradient, Outgoing

Stretch = tuple[int, int]
"""First entry and end of a stretch of the flat gradient."""


@register("exchange", "partitions")
class PartitionedExchange(Exchange):
    """The gradient is cut into p partitions; iteration t sends partition t mod p of all gradients not yet sent.

    With a constant p that is the sum of the last p gradients: each entry of each gradient reaches each peer exactly
    once, at most p - 1 iterations late. The worker itself applies its whole gradient at once.
    """

    class Parameters(ChoiceParameters):
        """Defaults: as recalled from the paper."""

        partitions: (
            Annotated[
                list[Annotated[int, Field(ge=1)]],
                BeforeValidator(
                    lambda given: [given] if isinstance(given, int) else given, json_schema_input_type=int | list[int]
                ),
                Field(min_length=1),
            ]
            | None
        ) = Field(
            None,
            description="p, or a list of each worker's. By default each worker chooses the least p with which its "
            "bandwidth carries a partition an iteration: gradient bytes * iterations per second * peers / bandwidth.",
        )
        by: Literal["bytes", "layers"] = Field(
            "bytes",
            description="bytes: partitions of equal size; layers: of whole variables, the largest as small as can be.",
        )
        bandwidth_smoothing: float = Field(
            0.3, gt=0, le=1, description="Weight of the newest value in the averages of bandwidth and iteration time."
        )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        given = parameters.partitions
        if given and len(given) not in (1, setup.workers):
            raise InputError(
                f"{len(given)} values for {setup.workers} workers",
                path="partitions",
                allowed=f"one value, or {setup.workers}",
            )
        self._given = given[setup.worker % len(given)] if given else None
        self._links = LinkMonitor(parameters.bandwidth_smoothing)
        self._unsent = torch.zeros_like(setup.replica.parameters)
        self._cycle: list[Stretch] = []
        """Partitions still to be sent before the gradient is cut anew."""

    def queued(self, peer: int, size: int, now: float) -> None:
        """Known to the link monitor."""
        self._links.queued(peer, size, now)

    def sent(self, peer: int, size: int, now: float) -> None:
        """Known to the link monitor."""
        self._links.sent(peer, now)

    def timed(self, peer: int, size: int, seconds: float) -> None:
        """Known to the link monitor."""
        self._links.timed(peer, size, seconds)

    def lost(self, peer: int) -> None:
        """Known to the link monitor."""
        self._links.lost(peer)

    def outgoing(self, own: LocalGradient) -> Outgoing:
        """The next partition of what was not sent yet, the same to all."""
        self._links.computed(own.seconds)
        self._unsent += own.gradient
        if not self._cycle:
            self._cycle = self._cut()
        begin, end = self._cycle.pop(0)
        part = self.stretch(own, begin, self._unsent[begin:end].clone())
        self._unsent[begin:end] = 0
        return Outgoing(self.whole(own), self.to_all(part))

    def _cut(self) -> list[Stretch]:
        sizes = self.setup.replica.layout.sizes
        if self.parameters.by == "layers":
            return by_layers(sizes, min(self._count(), len(sizes)))
        return by_bytes(sum(sizes), min(self._count(), sum(sizes)))

    def _count(self) -> int:
        """p: as given, or such that the links carry a partition to every peer while one gradient is computed."""
        if self._given:
            return self._given
        carried = self._links.carried_by_all()
        whole = DENSE_ENTRY_BYTES * self._unsent.numel() * len(self.setup.peers)
        return max(1, math.ceil(whole / carried)) if carried else 1


def by_bytes(size: int, count: int) -> list[Stretch]:
    """`count` stretches of `size` entries, equal but for one entry."""
    bounds = [size * number // count for number in range(count + 1)]
    return list(pairwise(bounds))


def by_layers(sizes: Sequence[int], count: int) -> list[Stretch]:
    """At most `count` stretches of whole variables, in order, such that the largest is as small as can be.

    The minimax linear partition: the least bound under which a greedy cut needs no more than `count` stretches.
    """
    low, high = max(sizes), sum(sizes)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if len(_greedy(sizes, middle)) <= count else (middle + 1, high)
    return _greedy(sizes, low)


def _greedy(sizes: Sequence[int], bound: int) -> list[Stretch]:
    """Stretches of whole variables, each as long as `bound` allows."""
    stretches: list[Stretch] = []
    begin = end = 0
    for size in sizes:
        if end > begin and end + size - begin > bound:
            stretches.append((begin, end))
            begin = end
        end += size
    return [*stretches, (begin, end)]
