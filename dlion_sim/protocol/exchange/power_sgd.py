"""Gradients as products of two thin matrices (PowerSGD: Vogels et al., NeurIPS'19, arXiv:1905.13727)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
import torch
from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.events import Abort, Action, Send
from dlion_sim.protocol.messages import Body, Channel, Count, MalformedMessageError, Message, Shapes, is_one
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing
from dlion_sim.streams import stream

BROKEN = (
    "PowerSGD's rounds need all workers, whatever on_loss says; system: dlion_sparse compresses without rounds, "
    "and can continue"
)


class Factor(Body, frozen=True, array_like=True):
    """A worker's terms of P and of variables that are sent whole (side 0), or of Q (1): values [m], by variable."""

    kind: ClassVar[str] = "factor"
    channel: ClassVar[Channel] = Channel.DATA
    iteration: Count
    side: Annotated[int, msgspec.Meta(ge=0, le=1)]

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return is_one(shapes, "f4", parameters)


@register("exchange", "power_sgd")
class PowerSGDExchange(Exchange):
    """M_i = g_i + e_i of each variable as a matrix; P <- orthogonal(mean of M_i Q); Q <- mean of M_i^T P; the step's
    gradient is P Q^T, and e_i <- M_i - P Q^T.

    Workers send each other their terms of P, then those of Q, with which the next iteration begins. Variables of one
    dimension, and those that two factors would not shorten, are sent whole. The exchange is itself the barrier.
    """

    needs_everyone = True
    sends_every_iteration = False
    receives = (Factor,)

    class Parameters(ChoiceParameters):
        """The paper's; it uses ranks from 1 to 4, and SGD with momentum."""

        rank: int = Field(4, ge=1, description="Columns of both factors.")

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        rank, layout, rng = parameters.rank, setup.replica.layout, stream(setup.seed, "power_sgd")
        self._shapes = [_factored(shape, rank) for shape in layout.shapes]
        """Of each variable: rows and columns of its matrix; None if it is sent whole."""
        columns = [shape[1] for shape in self._shapes if shape]
        self._lengths = (
            [rank * shape[0] if shape else size for shape, size in zip(self._shapes, layout.sizes, strict=True)],
            [rank * each for each in columns],
        )
        """Entries of each variable's terms in both rounds."""
        self._residual = torch.zeros_like(setup.replica.parameters)
        drawn = (rng.standard_normal((each, rank), dtype="float32") for each in columns)
        self._right = [torch.from_numpy(each).to(self._residual.device) for each in drawn]
        """Q of each matrix."""
        self._left: list[Tensor] = []
        """P of each matrix, or the mean of a variable that is sent whole."""
        self._own = torch.empty(0)
        """The own gradient and residual [P]."""
        self._factor = 1.0
        self._total = torch.empty(0)
        self._round = -1
        """2 k while iteration k's terms of P are gathered, 2 k + 1 while those of Q are, 2 k + 2 once both are here."""
        self._terms: dict[int, dict[int, Tensor]] = {}
        """By round and worker."""
        self._arrived = dict.fromkeys(setup.mixing, 0)
        """In how many rounds each peer has sent its terms."""

    def ready(self, iteration: int) -> bool:
        return self._round == 2 * iteration + 2

    def outgoing(self, own: LocalGradient) -> Outgoing:
        self._own, self._factor = self._residual + own.gradient, own.factor
        self._round = 2 * own.iteration
        right = iter(self._right)
        terms = [each @ next(right) if shape else each for each, shape in self._variables(self._own)]
        return Outgoing(None, [*self._send(terms), *self._proceed()])

    def received(self, message: Message) -> list[Action]:
        """Another worker's terms. Raises MalformedMessageError, with nothing changed, for others than its next ones."""
        body, arrived = message.body, self._arrived[message.sender]
        assert isinstance(body, Factor)
        if divmod(arrived, 2) != (body.iteration, body.side) or len(message.tensors[0]) != sum(
            self._lengths[body.side]
        ):
            raise MalformedMessageError("terms that are not the next ones")
        self._arrived[message.sender] = arrived + 1
        self._terms.setdefault(arrived, {})[message.sender] = message.tensors[0]
        return [Send(*each) for each in self._proceed()]

    def apply(self, incoming: Incoming) -> int:
        self.setup.replica.step(self._total)
        return self.setup.workers - 1

    def lost(self, peer: int) -> str:
        return BROKEN

    def joined(self, peer: int, iteration: int) -> list[Action]:
        return [Abort(BROKEN)]

    def _send(self, terms: Sequence[Tensor]) -> list[tuple[int, Message]]:
        """The own terms of the round, to all."""
        values = torch.cat([torch.empty(0, device=self._own.device), *(each.reshape(-1) for each in terms)])
        values *= self._factor
        self._terms.setdefault(self._round, {})[self.setup.worker] = values
        message = Message(self.setup.worker, Factor(*divmod(self._round, 2)), (values,))
        return [(peer, message) for peer in self.setup.peers]

    def _proceed(self) -> list[tuple[int, Message]]:
        """End the round, and the one after it, as far as the terms of all workers are here."""
        messages: list[tuple[int, Message]] = []
        while len(self._terms.get(self._round, ())) == self.setup.workers:
            terms, side = self._terms.pop(self._round), self._round % 2
            total = sum((terms[worker] for worker in range(1, self.setup.workers)), start=terms[0])
            self._round += 1
            if side == 0:
                messages += self._send(self._right_terms(total.split_with_sizes(self._lengths[0])))
            else:
                self._multiply(total.split_with_sizes(self._lengths[1]))
        return messages

    def _right_terms(self, means: Sequence[Tensor]) -> list[Tensor]:
        """The own terms of Q, by the means of the terms of P."""
        rank = self.parameters.rank
        self._left = [
            torch.linalg.qr(mean.view(-1, rank)).Q if shape else mean
            for mean, shape in zip(means, self._shapes, strict=True)
        ]
        variables = zip(self._variables(self._own), self._left, strict=True)
        return [matrix.T @ left for (matrix, shape), left in variables if shape]

    def _multiply(self, means: Sequence[Tensor]) -> None:
        """The step's gradient, and what it lacks of the own one, by the means of the terms of Q."""
        self._right = [mean.view(-1, self.parameters.rank) for mean in means]
        right, pairs = iter(self._right), zip(self._left, self._shapes, strict=True)
        self._total = torch.cat([(left @ next(right).T).reshape(-1) if shape else left for left, shape in pairs])
        self._residual = self._own - self._total
        for variable, shape in self._variables(self._residual):
            if not shape:
                variable.zero_()

    def _variables(self, values: Tensor) -> list[tuple[Tensor, tuple[int, int] | None]]:
        """Views of `values` [P], as matrices or as they are."""
        parts = values.split_with_sizes(self.setup.replica.layout.sizes)
        pairs = zip(parts, self._shapes, strict=True)
        return [(part.view(shape) if shape else part, shape) for part, shape in pairs]


def _factored(shape: tuple[int, ...], rank: int) -> tuple[int, int] | None:
    """Rows and columns of a variable as a matrix, rows being its first dimension; None if factors are not shorter."""
    if len(shape) < 2 or not math.prod(shape):
        return None
    rows, columns = shape[0], math.prod(shape[1:])
    return (rows, columns) if rank * (rows + columns) < rows * columns else None


SYSTEMS["power_sgd"] = Composition(  # The exchange is its own barrier.
    "Vogels et al., NeurIPS'19", exchange={"kind": "power_sgd"}, synchronization={"kind": "asynchronous"}
)
