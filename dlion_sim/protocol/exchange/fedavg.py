"""Federated averaging (McMahan et al., AISTATS'17), with momentum on the server (Hsu et al., 2019)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, ClassVar

import msgspec
import torch
from pydantic import Field
from torch import Tensor

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.events import Action
from dlion_sim.protocol.exchange.parameter_server import Push, ServedExchange, ServerParameters, ServerRule
from dlion_sim.protocol.messages import Body, Channel, Count, MalformedMessageError, Message, Shapes, Stage, is_whole
from dlion_sim.protocol.quantization import (
    Precision,
    PseudoGradientPrecision,
    are_encoded,
    check_encoded,
    decode,
    encode,
)
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing
from dlion_sim.scenario.system import ParameterServers
from dlion_sim.streams import stream


class Invitation(Body, frozen=True, array_like=True):
    """The server's parameters, for a worker of its round `iteration`'s cohort. None may be missing."""

    kind: ClassVar[str] = "invitation"
    channel: ClassVar[Channel] = Channel.DATA
    iteration: Count
    steps: Count
    """Local steps behind them, by which learning rates change."""

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return is_whole(shapes, parameters)


class RoundPseudoGradient(Push, frozen=True, array_like=True):
    """By how much `batch_size` samples have moved the parameters of the round `iteration`, in any precision."""

    wire_kind: ClassVar[str] = "round_pseudo_gradient"
    stage: ClassVar[Stage | None] = None
    steps: Annotated[int, msgspec.Meta(ge=1)]
    """Local steps of the round."""
    is_last: bool
    """Whether the worker has completed all its iterations."""

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return are_encoded(shapes, parameters)


class Rounds(ServerRule):
    """In each round a cohort, drawn among the members, begins with the server's parameters theta.

    Once the pseudo-gradients D_k, from n_k samples each, of those of the cohort that are still there have come:
    m <- momentum * m + sum of n_k D_k / sum of n_k, and theta <- theta - rate * m.
    """

    takes = RoundPseudoGradient
    needs_all = False

    def __init__(
        self, replica: Replica, *, seed: int, participation: float, rate: float, momentum: float, precision: Precision
    ) -> None:
        super().__init__(replica, asynchronous=False)
        self._seed, self._participation = seed, participation
        self._rate, self._factor, self._precision = rate, momentum, precision
        self._momentum = torch.zeros_like(replica.parameters)
        self._round = self._steps = 0
        self._cohort: set[int] = set()
        """Its workers that are still there."""
        self._done: set[int] = set()
        """Workers that have completed all their iterations."""

    def check(self, message: Message) -> None:
        assert isinstance(message.body, RoundPseudoGradient)
        if message.sender not in self._cohort or message.body.iteration != self._round:
            raise MalformedMessageError("a pseudo-gradient that the present round does not wait for")
        check_encoded(message.tensors, self._precision, len(self._momentum))

    def awaited(self, iteration: int, members: Mapping[int, int]) -> Iterable[int] | None:
        return self._cohort if self._cohort or members.keys() - self._done else None

    def removed(self, worker: int) -> None:
        self._cohort.discard(worker)
        self._done.discard(worker)

    def returned(self, worker: int) -> None:
        self._done.add(worker)

    def step(self, pushes: Sequence[Message], members: Collection[int]) -> None:
        bodies = [push.body for push in pushes]
        samples = sum(body.batch_size for body in bodies if isinstance(body, RoundPseudoGradient))
        self._steps += round(fmean(body.steps for body in bodies if isinstance(body, RoundPseudoGradient)))
        self._momentum.mul_(self._factor)
        for push, body in zip(pushes, bodies, strict=True):
            assert isinstance(body, RoundPseudoGradient)
            if body.is_last and push.sender in self._cohort:
                self._done.add(push.sender)
            pseudo_gradient = decode(push.tensors, self._precision, len(self._momentum))
            self._momentum.add_(pseudo_gradient, alpha=body.batch_size / samples)
        self._replica.mix(1.0, [(self._momentum, -self._rate)])

    def answers(self, pushes: Sequence[Message], iteration: int, members: Collection[int]) -> list[tuple[int, Body]]:
        """Invitations to the cohort of the round `iteration`; those whose pseudo-gradients have come rest."""
        present = sorted({*members} - self._done)
        size = min(len(present), max(1, round(self._participation * len(present))))
        cohort = stream(self._seed, "cohort", iteration).choice(len(present), size, replace=False)
        self._round, self._cohort = iteration, {present[place] for place in cohort.tolist()}
        return [(worker, Invitation(iteration, self._steps)) for worker in sorted(self._cohort)]


@register("exchange", "fedavg")
class FedAvgExchange(ServedExchange):
    """In each round the server invites a sample of the workers; each trains on its shard and sends its pseudo-gradient.

    All others rest: they compute nothing, and keep no parameters of their own. A worker begins a round with the
    server's parameters and a new optimizer, and rests afterwards. The server weighs pseudo-gradients by samples. It
    does not wait for a worker that is lost, but for the slowest of a cohort. A worker that is back counts its
    iterations from 0. Evaluated are the server's parameters.
    """

    receives = (Invitation,)
    sends_every_iteration = False
    evaluates_server = True

    class Parameters(ServerParameters):
        """Defaults: C of the paper's experiments with many workers; its server has no rate or momentum."""

        participation: float = Field(
            0.1, gt=0, le=1, description="C: the part of the present workers that is in a round's cohort, at least one."
        )
        epochs: float = Field(
            1.0, gt=0, description="E: passes of a worker over its shard in a round, of at least one batch."
        )
        outer_learning_rate: float = Field(1.0, gt=0, description="Of the server.")
        outer_momentum: float = Field(0.0, ge=0, lt=1, description="Of the server (FedAvgM).")
        precision: PseudoGradientPrecision = "fp32"

        def rule(self, replica: Replica, workers: int, seed: int) -> ServerRule:
            return Rounds(
                replica,
                seed=seed,
                participation=self.participation,
                rate=self.outer_learning_rate,
                momentum=self.outer_momentum,
                precision=self.precision,
            )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._resting = setup.replica.twin()
        """As at the start: all resting workers share it."""
        self._round: _Round | None = None
        """None while it rests."""
        self._first = -1
        """The first iteration of its last round."""

    @property
    def rests(self) -> bool:
        return self._round is None

    def received(self, message: Message) -> list[Action]:
        """An invitation, which ends the rest."""
        body = message.body
        assert isinstance(body, Invitation)
        if self._round is not None:
            raise MalformedMessageError("an invitation to a worker that does not rest")
        samples = math.ceil(round(self.parameters.epochs * self.setup.shard_samples, 6))
        self._round = _Round(body.iteration, message.tensors[0], body.steps, samples)
        return []

    def began(self, iteration: int, batch_size: int) -> Sequence[tuple[int, Message]]:
        assert self._round is not None
        if not self._round.steps:
            self._first = iteration
            self.setup.replica.begin_anew(self._round.start, self._round.steps_before)
        return []

    def outgoing(self, own: LocalGradient) -> Outgoing:
        replica, taken = self.setup.replica, self._round
        assert taken is not None
        replica.step(own.gradient)
        taken.samples += own.batch_size
        taken.steps += 1
        is_last = own.iteration + 1 == self.setup.iterations
        if taken.samples < taken.least_samples and not is_last:
            return Outgoing(None, [])
        tensors = encode(taken.start - replica.parameters, self.parameters.precision)
        body = RoundPseudoGradient(taken.number, taken.samples, 0, taken.steps, is_last)
        replica.become(self._resting)
        self._round = None
        return Outgoing(None, [(server, Message(self.setup.worker, body, tensors)) for server in self.stretches])

    def apply(self, incoming: Incoming) -> int:
        """Nothing more to do; the server's parameters count as applied in the round's first iteration."""
        return int(incoming.iteration == self._first)


@dataclass(slots=True)
class _Round:
    """A worker's part in a round."""

    number: int
    start: Tensor
    """The server's parameters [P]."""
    steps_before: int
    """Local steps behind these."""
    least_samples: int
    """To process."""
    samples: int = 0
    """Processed."""
    steps: int = 0


SYSTEMS["fedavg"] = Composition(
    "McMahan et al., AISTATS'17",
    exchange={"kind": "fedavg"},
    synchronization={"kind": "asynchronous"},
    topology=ParameterServers(),
)
