"""Many local steps between exchanges: local SGD and DiLoCo."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import ClassVar, Literal, Self, cast

import torch
from pydantic import Field, model_validator
from torch import Tensor

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.events import Abort, Action
from dlion_sim.protocol.exchange.ring_sum import BROKEN, CANNOT_JOIN, Chunk, RingSum
from dlion_sim.protocol.messages import HALVES, Body, Contribution, Message, Mixed, Shapes, Stage, is_one
from dlion_sim.protocol.quantization import FLOATS, Float, Precision, are_encoded, check_encoded, decode, encode
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing, Update


class Moved(Contribution, frozen=True, array_like=True):
    """By how much a worker's parameters have moved since the last exchange, in less than single precision.

    None may be missing: the parameters of a worker without some of them would differ from then on.
    """

    wire_kind: ClassVar[str] = "moved_params"
    stage: ClassVar[Stage | None] = None

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return are_encoded(shapes, parameters) and [code for code, _ in shapes] != ["f4"]


class MovedChunk(Chunk, frozen=True, array_like=True):
    """A chunk of the sum of these pseudo-gradients, on its way round a ring. None may be missing either."""

    wire_kind: ClassVar[str] = "moved_chunk"
    stage: ClassVar[Stage | None] = None

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return is_one(shapes, ("f4", *HALVES), parameters)


_INSTEAD = "route: all_to_all can continue"


@register("exchange", "local_sgd")
class LocalSgdExchange(Exchange):
    """Every worker steps by its own gradients; every `period` iterations all take the mean of their parameters.

    Stich, ICLR'19; for a sample of the workers in each period, see `fedavg`. Where it is not waited for all, parameters
    that come after their exchange count in the next one, unless newer ones are here by then.

    With a ring or in half precision pseudo-gradients (by how much parameters have changed since the last exchange) are
    averaged instead. As all workers had the same parameters then, the result is the same up to rounding, and rounding
    errors are smaller.
    """

    class Parameters(ChoiceParameters):
        """How long workers are on their own, and how the mean is formed."""

        period: int = Field(10, ge=1, description="Iterations between exchanges.")
        route: Literal["all_to_all", "ring"] = Field(
            "all_to_all",
            description="ring: a ring all-reduce in the scenario's order, of 2 (n - 1) / n models instead of n - 1; "
            "no worker may leave or join.",
        )
        precision: Precision = Field(
            "fp32",
            description="Precision of what is sent; other than fp32, each worker's pseudo-gradient. int8 and fp4 "
            "(E3M0) have a scale for 1,024 values, and need route: all_to_all.",
        )

        @model_validator(mode="after")
        def _ring_sums_floats(self) -> Self:
            if self.route == "ring" and self.precision not in FLOATS:
                raise ValueError(f"a ring passes on sums, which {self.precision} does not: route: all_to_all")
            return self

    parameters: Parameters
    receives: tuple[type[Body], ...] = (Mixed, Moved, MovedChunk)

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._received: dict[int, Update] = {}
        """Each peer's newest contribution since the last exchange."""
        self._sends = Moved if self.needs_lockstep(parameters) else Mixed
        is_ring = parameters.route == "ring"
        bodies, precision = (MovedChunk, MovedChunk), cast(Float, parameters.precision)
        self._ring = RingSum(setup, bodies, None, precision, parameters.period) if is_ring else None
        self.receives = (MovedChunk,) if is_ring else (self._sends,)
        self._start = setup.replica.parameters.clone() if self._sends is Moved else torch.empty(0)
        """Where the period began, if pseudo-gradients from there are sent."""
        self.common = (self._start,) if self._sends is Moved else ()

    @classmethod
    def needs_lockstep(cls, parameters: Parameters) -> str | None:
        """Where pseudo-gradients are averaged: workers that began with different parameters would keep them so."""
        if parameters.route == "ring":
            return "route: ring"
        return None if parameters.precision == "fp32" else f"precision: {parameters.precision}"

    def covers(self, tag: int) -> int:
        """There is nothing to wait for before the next exchange. A ring is the barrier itself: see `ready`."""
        if self._ring:
            return sys.maxsize
        period = self.parameters.period
        return tag + period - (tag + 1) % period - 1

    def ready(self, iteration: int) -> bool:
        return self._ring is None or not self._ends_period(iteration) or self._ring.is_complete

    def arrived(self, update: Update) -> None:
        check_encoded(update.tensors, self.parameters.precision, self.setup.replica.layout.size)

    def received(self, message: Message) -> list[Action]:
        assert self._ring is not None
        return self._ring.received(message)

    def lost(self, peer: int) -> str | None:
        """Its last pseudo-gradient may have reached some workers only, whose parameters would stay different."""
        reason = "a lost worker's last pseudo-gradient may have reached only some; precision: fp32 can continue"
        return self.left(peer) or (reason if self._sends is Moved else None)

    def left(self, peer: int) -> str | None:
        self._received.pop(peer, None)
        return f"{BROKEN}; {_INSTEAD}" if self._ring else None

    def joined(self, peer: int, iteration: int) -> list[Action]:
        return [Abort(f"{CANNOT_JOIN}; {_INSTEAD}")] if self._ring else []

    def outgoing(self, own: LocalGradient) -> Outgoing:
        replica = self.setup.replica
        replica.step(own.gradient)
        if not self._ends_period(own.iteration):
            return Outgoing(None, [])
        values = replica.snapshot() if self._sends is Mixed else self._start - replica.parameters
        if self._ring:
            return Outgoing(None, self._ring.begin(own.iteration, values / self.setup.workers))
        body = self._sends(own.iteration, own.batch_size)
        update = Update(self.setup.worker, body, encode(values, self.parameters.precision))
        return Outgoing(update, self.to_all(update))

    def apply(self, incoming: Incoming) -> int:
        if self._ring:
            if self._ends_period(incoming.iteration):
                self._begin_period(self._start - self._ring.total)
                return self.setup.workers - 1
            return 0
        for update in sorted(incoming.received, key=lambda update: update.body.iteration):
            self._received[update.sender] = update
        if incoming.own is None:
            return 0
        updates = sorted([incoming.own, *self._received.values()], key=lambda update: update.sender)
        self._received.clear()
        mean = torch.zeros_like(self.setup.replica.parameters)
        for update in updates:
            mean.add_(decode(update.tensors, self.parameters.precision, len(mean)), alpha=1 / len(updates))
        self._begin_period(mean if self._sends is Mixed else self._start - mean)
        return len(updates) - 1

    def _begin_period(self, mean: Tensor) -> None:
        """Begin a period, given the mean of all workers' parameters [P]."""
        start = self._next_start(mean)
        self.setup.replica.merge(start, 1.0)
        if self._sends is Moved:
            self._start.copy_(start)

    def _ends_period(self, iteration: int) -> bool:
        return (iteration + 1) % self.parameters.period == 0

    def _next_start(self, mean: Tensor) -> Tensor:
        """The parameters [P] of the next period, given the mean of all workers'."""
        return mean


@register("exchange", "diloco")
class DiLoCoExchange(LocalSgdExchange):
    """As local SGD, but an outer optimizer with Nesterov momentum steps by the mean pseudo-gradient of a period.

    Douillard et al., 2023 (arXiv:2311.08105). All workers see the same ones, and hold the same outer state.
    """

    class Parameters(LocalSgdExchange.Parameters):
        """Defaults: the paper's."""

        period: int = Field(500, ge=1, description="Iterations between exchanges.")
        outer_learning_rate: float = Field(0.7, gt=0, description="Of the outer optimizer.")
        outer_momentum: float = Field(0.9, ge=0, lt=1, description="Nesterov's, of the outer optimizer.")

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._start = setup.replica.parameters.clone()
        self._momentum = torch.empty(0)
        """[P] from the first outer step on."""

    def state(self) -> Sequence[Tensor]:
        return [self._start.clone(), self._momentum.clone()]

    def take_over(self, tensors: Sequence[Tensor]) -> None:
        start, momentum = tensors
        self._start.copy_(start)
        self._momentum = momentum.to(self._start.device, copy=True)

    def _next_start(self, mean: Tensor) -> Tensor:
        if not len(self._momentum):
            self._momentum = torch.zeros_like(self._start)
        rate, factor = self.parameters.outer_learning_rate, self.parameters.outer_momentum
        nesterov(self._start, self._momentum, self._start - mean, rate, factor)
        return self._start


def nesterov(start: Tensor, momentum: Tensor, gradient: Tensor, rate: float, factor: float) -> None:
    """A step of `start` [m] with Nesterov's momentum [m], both of which are written."""
    momentum.mul_(factor).add_(gradient)
    start.add_(gradient.add(momentum, alpha=factor), alpha=-rate)


SYSTEMS["local_sgd"] = Composition("Stich, ICLR'19", exchange={"kind": "local_sgd"})
SYSTEMS["diloco"] = Composition("Douillard et al., 2023", exchange={"kind": "diloco"})
