"""Gradients as products of two thin matrices (PowerSGD: Vogels et al., NeurIPS'19, arXiv:1905.13727)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, ClassVar, NamedTuple

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
    """A worker's terms of P of each matrix and the variables that are sent whole (side 0), or of Q (1): values [m]."""

    kind: ClassVar[str] = "factor"
    channel: ClassVar[Channel] = Channel.DATA
    growth: ClassVar[float] = 0.5  # with layers k times as wide, matrices have k^2 times the entries, factors k times
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
        self._residual = torch.zeros_like(setup.replica.parameters)
        places = list(zip(accumulate((0, *layout.sizes)), layout.sizes, layout.shapes, strict=False))
        self._matrices = [Matrix(begin, *shape) for begin, _, each in places if (shape := _factored(each, rank))]
        whole = [torch.arange(begin, begin + size) for begin, size, each in places if not _factored(each, rank)]
        self._whole = torch.cat([torch.empty(0, dtype=torch.int64), *whole]).to(self._residual.device)
        """The entries of variables that are sent whole."""
        self._lengths = (
            [*(rank * each.rows for each in self._matrices), len(self._whole)],
            [rank * each.columns for each in self._matrices],
        )
        """Entries of the terms of each matrix in both rounds, and of all that is sent whole."""
        self._sizes = tuple(map(sum, self._lengths))
        drawn = (rng.standard_normal((each.columns, rank), dtype="float32") for each in self._matrices)
        self._right = [torch.from_numpy(each).to(self._residual.device) for each in drawn]
        """Q of each matrix. Workers of one process share it, and what follows from all workers' terms."""
        self._left: list[Tensor] = []
        """P of each matrix, and the mean of what is sent whole."""
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
        terms = [each.of(self._own) @ right for each, right in zip(self._matrices, self._right, strict=True)]
        return Outgoing(None, [*self._send([*terms, self._own[self._whole]]), *self._proceed()])

    def received(self, message: Message) -> list[Action]:
        """Another worker's terms. Raises MalformedMessageError, with nothing changed, for others than its next ones."""
        body, arrived = message.body, self._arrived[message.sender]
        assert isinstance(body, Factor)
        due = arrived == 2 * body.iteration + body.side
        if not due or message.tensors[0].numel() != self._sizes[body.side]:
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
            of_worker, side = self._terms.pop(self._round), self._round % 2
            terms = [of_worker[worker] for worker in range(self.setup.workers)]
            self._round += 1
            if side == 0:
                self._left = self.setup.sums.derived(terms, ("left", self.parameters), self._orthogonal)
                pairs = zip(self._matrices, self._left, strict=False)
                messages += self._send([each.of(self._own).T @ left for each, left in pairs])
            else:
                key = ("right", self.parameters)
                self._right, self._total = self.setup.sums.derived(terms, key, self._multiplied)
                self._residual = self._own - self._total
                self._residual.index_fill_(0, self._whole, 0.0)
        return messages

    def _orthogonal(self, terms: Sequence[Tensor]) -> list[Tensor]:
        """`_left`, by all workers' terms of P."""
        *means, whole = sum(terms[1:], start=terms[0]).split_with_sizes(self._lengths[0])
        return [*(torch.linalg.qr(mean.view(-1, self.parameters.rank)).Q for mean in means), whole]

    def _multiplied(self, terms: Sequence[Tensor]) -> tuple[list[Tensor], Tensor]:
        """`_right` and the step's gradient [P], by all workers' terms of Q."""
        means = sum(terms[1:], start=terms[0]).split_with_sizes(self._lengths[1])
        right = [mean.view(-1, self.parameters.rank) for mean in means]
        total = torch.empty_like(self._own)
        for each, left, its in zip(self._matrices, self._left, right, strict=False):
            torch.mm(left, its.T, out=each.of(total))
        return right, total.index_copy_(0, self._whole, self._left[-1])


class Matrix(NamedTuple):
    """A variable as a matrix."""

    begin: int
    """Its first entry in a flat vector."""
    rows: int
    columns: int

    def of(self, values: Tensor) -> Tensor:
        """It as a view of `values` [P]."""
        return values[self.begin : self.begin + self.rows * self.columns].view(self.rows, self.columns)


def _factored(shape: tuple[int, ...], rank: int) -> tuple[int, int] | None:
    """Rows and columns of a variable as a matrix, rows being its first dimension; None if factors are not shorter."""
    if len(shape) < 2 or not math.prod(shape):
        return None
    rows, columns = shape[0], math.prod(shape[1:])
    return (rows, columns) if rank * (rows + columns) < rows * columns else None


SYSTEMS["power_sgd"] = Composition(  # The exchange is its own barrier.
    "Vogels et al., NeurIPS'19", exchange={"kind": "power_sgd"}, synchronization={"kind": "asynchronous"}
)
