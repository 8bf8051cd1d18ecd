"""Asynchronous local SGD with delayed Nesterov momentum (Liu et al., 2024, arXiv:2401.09135)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Annotated, ClassVar

import msgspec
import torch
from pydantic import Field

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.exchange.parameter_server import Pulled, Push, ServedExchange, ServerParameters, ServerRule
from dlion_sim.protocol.messages import MalformedMessageError, Message, Shapes, Stage
from dlion_sim.protocol.quantization import (
    Precision,
    PseudoGradientPrecision,
    are_encoded,
    check_encoded,
    decode,
    encode,
)
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing, Update
from dlion_sim.scenario.system import ParameterServers

_SHORTEST, _LONGEST = 1e-9, 1e9
Seconds = Annotated[float, msgspec.Meta(ge=_SHORTEST, le=_LONGEST)]
"""The duration of a local step."""


class PseudoGradient(Push, frozen=True, array_like=True):
    """By how much a worker's parameters have moved in its period, of the entries of a server, in any precision."""

    wire_kind: ClassVar[str] = "pseudo_gradient"
    stage: ClassVar[Stage | None] = None
    step: Seconds

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return are_encoded(shapes, parameters - self.offset)


class Merged(Pulled, frozen=True, array_like=True, kw_only=True):
    """A server's answer to a pseudo-gradient."""

    wire_kind: ClassVar[str] = "merged_param"
    fastest: Seconds
    """Of the fastest worker."""


class DelayedNesterov(ServerRule):
    """Applies each pseudo-gradient D as it comes: theta <- theta - rate * D / N.

    With every N-th one, m <- momentum * m + (sum of the last N) / N, and theta <- theta - rate * momentum * m. It
    remembers how long the fastest worker's steps take.
    """

    takes = PseudoGradient

    def __init__(self, replica: Replica, *, rate: float, momentum: float, every: int, precision: Precision) -> None:
        super().__init__(replica, asynchronous=True)
        self._rate, self._factor, self._every, self._precision = rate, momentum, every, precision
        self._momentum, self._sum = torch.zeros_like(replica.parameters), torch.zeros_like(replica.parameters)
        self._count = 0
        """The pseudo-gradients in the sum."""
        self._steps: dict[int, float] = {}
        """By worker, the seconds of its local step."""

    def check(self, message: Message) -> None:
        check_encoded(message.tensors, self._precision, len(self._sum))

    def step(self, pushes: Sequence[Message], members: Collection[int]) -> None:
        for push in pushes:
            assert isinstance(push.body, PseudoGradient)
            self._steps = {worker: step for worker, step in self._steps.items() if worker in members}
            self._steps[push.sender] = push.body.step
            self._apply(decode(push.tensors, self._precision, len(self._sum)) / self._every)

    def _apply(self, part: torch.Tensor) -> None:
        self._sum += part
        self._count += 1
        terms = [(part, -self._rate)]
        if self._count == self._every:
            self._momentum.mul_(self._factor).add_(self._sum)
            terms.append((self._momentum, -self._rate * self._factor))
            self._sum.zero_()
            self._count = 0
        self._replica.mix(1.0, terms)

    def answer(self, push: Push) -> Pulled:
        return Merged(push.iteration, push.batch_size, offset=push.offset, fastest=min(self._steps.values()))


@register("exchange", "async_local_sgd")
class AsyncLocalSgdExchange(ServedExchange):
    """A worker takes local steps, sends its pseudo-gradient to servers, and continues from their parameters.

    A server applies each pseudo-gradient as it comes, with delayed Nesterov momentum: every N-th one changes the
    momentum, by the mean of the last N. A worker waits for the answers to its own only; an answer tells how long the
    fastest worker's local steps take, so that periods take all workers about as long.
    """

    sends_every_iteration = False
    receives = (Merged,)

    class Parameters(ServerParameters):
        """Defaults: those of DiLoCo's outer optimizer."""

        period: int = Field(50, ge=1, description="H: local steps of the fastest worker in a period.")
        dynamic: bool = Field(
            True,
            description="Whether slower workers take fewer local steps: H times their relative speed, rounded up. "
            "All begin with H.",
        )
        outer_learning_rate: float = Field(0.7, gt=0, description="Of the servers.")
        outer_momentum: float = Field(0.9, ge=0, lt=1, description="Nesterov's, of the servers.")
        momentum_every: int | None = Field(
            None,
            ge=1,
            description="N: pseudo-gradients between changes of the momentum; each is divided by it. By default the "
            "number of workers.",
        )
        precision: PseudoGradientPrecision = "fp32"

        def rule(self, replica: Replica, workers: int, seed: int) -> ServerRule:
            return DelayedNesterov(
                replica,
                rate=self.outer_learning_rate,
                momentum=self.outer_momentum,
                every=self.momentum_every or workers,
                precision=self.precision,
            )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._steps = parameters.period
        """Local steps of the present period."""
        self._start = setup.replica.snapshot()
        """The parameters with which it began."""
        self._seconds: list[float] = []
        """Of its local steps so far."""
        self._sent = -1
        """The iteration of the last pseudo-gradient."""
        self._awaited: set[int] = set()
        """Servers whose answers to it are missing."""

    def outgoing(self, own: LocalGradient) -> Outgoing:
        replica = self.setup.replica
        if not self._seconds:
            self._start = replica.snapshot()
        replica.step(own.gradient)
        self._seconds.append(own.seconds)
        if len(self._seconds) < self._steps:
            return Outgoing(None, [])
        self._sent, self._awaited = own.iteration, set(self.stretches)
        pseudo_gradient, step = self._start - replica.parameters, self._own_step
        messages = []
        for server, (begin, end) in self.stretches.items():
            body = PseudoGradient(own.iteration, own.batch_size, begin, step)
            tensors = encode(pseudo_gradient[begin:end], self.parameters.precision)
            messages.append((server, Message(self.setup.worker, body, tensors)))
        return Outgoing(None, messages)

    def arrived(self, update: Update) -> None:
        super().arrived(update)
        if update.sender not in self._awaited or update.body.iteration != self._sent:
            raise MalformedMessageError("an answer to no pseudo-gradient")
        self._awaited.remove(update.sender)

    def ready(self, iteration: int) -> bool:
        return not self._awaited

    def apply(self, incoming: Incoming) -> int:
        """At the end of a period, continue from the servers' parameters, with as many steps as the speed allows."""
        applied = super().apply(incoming)
        if applied:
            fastest = min(update.body.fastest for update in incoming.received if isinstance(update.body, Merged))
            if self.parameters.dynamic:
                part = min(1.0, fastest / self._own_step)
                self._steps = max(1, math.ceil(self.parameters.period * part))
            self._seconds.clear()
        return applied

    @property
    def _own_step(self) -> float:
        return min(max(sum(self._seconds) / len(self._seconds), _SHORTEST), _LONGEST)


SYSTEMS["async_local_sgd"] = Composition(
    "Liu et al., 2024",
    exchange={"kind": "async_local_sgd"},
    synchronization={"kind": "asynchronous"},
    topology=ParameterServers(),
)
