"""Outer optimization in pairs, without an all-reduce (NoLoCo: Kolehmainen et al., 2025, arXiv:2506.10911)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.exchange.groups import GroupExchange
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.streams import stream


@register("exchange", "noloco")
class NoLoCoExchange(GroupExchange):
    """After local steps: m <- a m + b mean(theta - phi) + b (mean(phi) - phi_i), phi_i <- phi_i + m, theta_i <- phi_i,
    with means over a random group.

    theta are a worker's parameters, phi those with which its period began. As both terms have the factor b, the group's
    mean of theta suffices: workers send half of what the paper's do. Groups are drawn anew for each period. A worker
    waits for its group only, and is alone if no other one is there.
    """

    class Parameters(GroupExchange.Parameters):
        """Defaults: the paper's."""

        period: int = Field(50, ge=1, description="Iterations between exchanges.")
        group: int = Field(2, ge=2, description="Workers of a group; the remainder of a division joins the others.")
        outer_learning_rate: float = Field(0.7, gt=0, description="b.")
        outer_momentum: float = Field(0.5, ge=0, lt=1, description="a.")

    parameters: Parameters
    kind = "noloco"

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._start = setup.replica.parameters.clone()
        """phi."""
        self._momentum = torch.zeros_like(self._start)
        self.common = self._start, self._momentum

    def next_start(self, mean: Tensor) -> Tensor:
        rate, momentum = self.parameters.outer_learning_rate, self.parameters.outer_momentum
        self._momentum.mul_(momentum).add_(mean - self._start, alpha=rate)
        self._start += self._momentum
        return self._start

    def group(self, number: int) -> Sequence[int]:
        workers, me = self.setup.workers, self.setup.worker
        groups = max(1, workers // self.parameters.group)
        iteration = number * self.parameters.period - 1
        shuffled = stream(self.setup.seed, "noloco", iteration).permutation(workers).tolist()
        place = shuffled.index(me) % groups
        return [worker for worker in shuffled[place::groups] if worker != me]


SYSTEMS["noloco"] = Composition("Kolehmainen et al., 2025", exchange={"kind": "noloco"})
