"""Accumulated partial gradients, a partition an iteration in turn (Ako: Watcharapichat et al., SoCC'16)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

import torch
from pydantic import BeforeValidator, Field

from dlion_sim.errors import InputError
from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import DENSE_ENTRY_BYTES, LocalGradient, Outgoing

Stretch = tuple[int, int]
"""First entry and end of a stretch of the flat gradient."""


@register("exchange", "partitions")
class PartitionedExchange(Exchange):
    """The gradient is cut into p partitions; iteration t sends partition t mod p of all gradients not yet sent.

    With a constant p that is the sum of the last p gradients: each entry of each gradient reaches each peer exactly
    once, at most p - 1 iterations late. The worker itself applies its whole gradient at once.

    Where p follows from bandwidth, it may change at any iteration; what comes next then ends where a partition of the
    new p does. Until every link has been measured, single entries are sent: whole gradients to all would keep slow
    links busy for many iterations.

    If workers begin `spread`, worker k of n does so at k/n of the gradient: a reading of "a worker receives a different
    gradient partition from other workers in each synchronisation round" (Ako's project page). `same` is TF.AKO's.
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
            description="p, or a list of each worker's. By default the least p such that the bandwidth carries a "
            "partition an iteration: gradient bytes * iterations per second * peers / bandwidth.",
        )
        bandwidth: Literal["slowest", "sum"] = Field(
            "slowest",
            description="The bandwidth that p follows: peers times that of the slowest link (chosen here), or the "
            "sum (the paper's).",
        )
        hysteresis: float = Field(
            0.05,
            ge=0,
            lt=1,
            description="p falls only if links carry more than needed by this part (chosen here).",
        )
        by: Literal["bytes", "layers"] = Field(
            "bytes",
            description="bytes: partitions of equal size; layers: of whole variables.",
        )
        first: Literal["same", "spread"] = Field(
            "same",
            description="Where workers begin: all with the first partition (as TF.AKO's), or spread evenly over the "
            "gradient. Workers that are at the same partition change the same entries at once, which limits the rate.",
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
        setup.links.follow("measured", parameters.bandwidth_smoothing)
        self._residual = torch.zeros_like(setup.replica.parameters)
        self._count: int | None = None
        """The present p."""
        self._ends: list[int] = []
        """The ends of its partitions."""
        self._position = 0
        """The beginning of the next partition."""
        if parameters.first == "spread":
            self._position = self._residual.numel() * setup.worker // setup.workers
            if self._given:
                self._cut(self._whole(self._given))
                self._position = [0, *self._ends][len(self._ends) * setup.worker // setup.workers]

    def outgoing(self, own: LocalGradient) -> Outgoing:
        self._residual += own.gradient
        begin, end = self._position, self._end_of_next()
        self._position = end % self._residual.numel()
        part = self.stretch(own, begin, self._residual[begin:end].clone())
        self._residual[begin:end] = 0
        return Outgoing(self.whole(own), self.to_all(part))

    def _end_of_next(self) -> int:
        count = self._whole(self._given) if self._given else self._partitions_by_bandwidth()
        if count is None:
            return self._position + 1
        if count != self._count:
            self._cut(count)
        return self._ends[bisect_right(self._ends, self._position)]

    def _cut(self, count: int) -> None:
        """Use `count` partitions from now on."""
        self._count = count
        sizes = self.setup.replica.layout.sizes
        cut = by_layers(sizes, count) if self.parameters.by == "layers" else by_bytes(sum(sizes), count)
        self._ends = [end for _, end in cut]

    def _partitions_by_bandwidth(self) -> int | None:
        """p such that the links carry a partition to every peer while one gradient is computed; None if not known."""
        if not self.setup.peers:
            return 1
        carried = self.setup.links.carried(self.setup.peers)
        if not carried:
            return None
        each = min(carried) if self.parameters.bandwidth == "slowest" else sum(carried) / len(carried)
        exact = DENSE_ENTRY_BYTES * self._residual.numel() / each if each else math.inf
        if self._count is None or exact > self._count:
            return self._whole(exact)
        # Falling by a little would be undone by the next measurement: near a whole number p would go up and down.
        return min(self._count, self._whole(exact / (1 - self.parameters.hysteresis)))

    def _whole(self, exact: float) -> int:
        """The least p that is no smaller, up to partitions of one entry or one variable."""
        layout = self.setup.replica.layout
        return math.ceil(min(exact, len(layout.sizes) if self.parameters.by == "layers" else layout.size))


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


SYSTEMS["ako"] = Composition(
    "Watcharapichat et al., SoCC'16", exchange={"kind": "partitions"}, synchronization={"kind": "asynchronous"}
)
