"""The strongest frequencies of momentum, and steps by signs (DeMo: Peng et al., 2024, arXiv:2411.19870)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate

import torch
from pydantic import Field
from torch import Tensor

from dlion_sim.learning.flat import Layout
from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing


@register("exchange", "demo")
class DeMoExchange(Exchange):
    """In each iteration: m <- b m + g; q, the largest DCT coefficients of each tile of m, is sent and taken off m; the
    step's gradient is the sign of the inverse DCT of the sum of all q.

    With a schedule of learning rates, g is scaled by it, as in the paper. Tiles are of a variable as a matrix: rows are
    its first dimension. What is not sent stays in m. An entry takes 8 bytes, as in all sparse messages (in the authors'
    code 12). Use an optimizer without momentum; its weight decay is then the paper's.
    """

    class Parameters(ChoiceParameters):
        """Defaults: the paper's, but for `scale`, with which it learns at learning rates of SGD."""

        decay: float = Field(0.999, ge=0, lt=1, description="Of the momentum, in each iteration: b.")
        tile: int = Field(64, ge=1, description="Largest length of a tile; it divides the variable's.")
        entries: int = Field(32, ge=1, description="Coefficients of a tile that are sent.")
        scale: float = Field(
            0.02, gt=0, description="Of the signs: the learning rate times this is the step of a parameter."
        )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._tiles = tiles_of(setup.replica.layout, parameters.tile, setup.replica.parameters.device)
        self._momentum = torch.zeros_like(setup.replica.parameters)
        """Its coefficients [P], of which what is sent is taken off without a transform."""

    @classmethod
    def needs_lockstep(cls, parameters: Parameters) -> str:
        """The sign of a part of a sum is not a part of its sign."""
        return "exchange: demo"

    def outgoing(self, own: LocalGradient) -> Outgoing:
        # In the paper by the learning rate, whose constant part the signs would take off again.
        rate = self.setup.replica.decay
        self._momentum.mul_(self.parameters.decay).add_(self._tiles.dct(own.gradient), alpha=rate)
        indices = self._tiles.strongest(self._momentum, self.parameters.entries)
        update = self.entries(own, indices, self._momentum.index_select(0, indices))
        self._momentum.index_fill_(0, indices.long(), 0.0)
        return Outgoing(update, self.to_all(update))

    def apply(self, incoming: Incoming) -> int:
        replica = self.setup.replica
        if terms := [(update, incoming.factor(update.body)) for update in incoming.updates]:
            total = self.setup.sums.of(terms, replica.layout.size)
            replica.step(self.setup.sums.derived([total], self.parameters, self._signs))
        return len(incoming.received)

    def _signs(self, totals: Sequence[Tensor]) -> Tensor:
        (total,) = totals
        return self._tiles.inverse_dct(total).sign_().mul_(self.parameters.scale)


@dataclass(frozen=True, eq=False)
class Tiles:
    """The tiles of a model's variables: in the order of their columns, then of their rows, then of the variables.

    Coefficients [P] stand tile after tile, each row by row, so that tiles of one shape are transformed together.
    """

    shapes: tuple[tuple[int, int, int], ...]
    """Number, rows and columns of the tiles of each shape."""
    begins: tuple[Tensor, ...]
    """Of each shape: where its tiles begin among the coefficients, int64 [number, 1]."""
    places: Tensor
    """Of each coefficient: the place of its entry among the parameters, int32 [P]."""
    ranks: Tensor
    """Of each parameter: the place of its entry among the coefficients, int32 [P]."""

    def dct(self, values: Tensor) -> Tensor:
        """The orthonormal DCT-II in two dimensions of each tile of `values` [P]: coefficients [P]."""
        parts, device = self._parts(values.index_select(0, self.places)), values.device
        return torch.cat([_product(_basis(p, device), part, _basis(q, device).T) for part, p, q in parts])

    def inverse_dct(self, coefficients: Tensor) -> Tensor:
        """The values [P] whose `dct` is that."""
        parts, device = self._parts(coefficients), coefficients.device
        entries = torch.cat([_product(_basis(p, device).T, part, _basis(q, device)) for part, p, q in parts])
        return entries.index_select(0, self.ranks)

    def strongest(self, coefficients: Tensor, count: int) -> Tensor:
        """Indices (int32, increasing) of the `count` largest coefficients [P] by magnitude of each tile, or of all."""
        found = []
        for (part, p, q), begins in zip(self._parts(coefficients.abs()), self.begins, strict=True):
            places = part.view(-1, p * q).topk(min(count, p * q), dim=1, sorted=False).indices
            found.append((places + begins).view(-1))
        return torch.cat(found).sort().values.to(torch.int32)

    def _parts(self, coefficients: Tensor) -> Iterator[tuple[Tensor, int, int]]:
        """The tiles of each shape [number, p, q], with p and q."""
        sizes = [number * p * q for number, p, q in self.shapes]
        for part, (number, p, q) in zip(coefficients.split_with_sizes(sizes), self.shapes, strict=True):
            yield part.view(number, p, q), p, q


def _product(left: Tensor, tiles: Tensor, right: Tensor) -> Tensor:
    """All entries of left [p, p] @ each tile [p, q] @ right [q, q]."""
    found = tiles @ right
    return (left @ found if len(left) > 1 else found).view(-1)


@lru_cache(maxsize=8)
def tiles_of(layout: Layout, limit: int, device: torch.device) -> Tiles:
    """The tiles of at most `limit` rows and columns; the workers of a process share them."""
    places: dict[tuple[int, int], list[Tensor]] = {}
    for begin, size, shape in zip(accumulate((0, *layout.sizes)), layout.sizes, layout.shapes, strict=False):
        rows = shape[0] if len(shape) > 1 else 1
        columns = size // max(1, rows)
        p, q = (_divisor(length, limit) for length in (rows, columns))
        tiles = torch.arange(begin, begin + size).view(rows // p, p, columns // q, q).transpose(1, 2)
        places.setdefault((q, p), []).append(tiles.reshape(-1))
    ordered = torch.cat([entries for shape in sorted(places) for entries in places[shape]])
    shapes = tuple((sum(map(len, places[q, p])) // (p * q), p, q) for q, p in sorted(places))
    begins = accumulate((0, *(number * p * q for number, p, q in shapes)))
    return Tiles(
        shapes,
        tuple(
            torch.arange(begin, begin + number * p * q, p * q, device=device)[:, None]
            for begin, (number, p, q) in zip(begins, shapes, strict=False)
        ),
        ordered.to(device, torch.int32),
        ordered.argsort().to(device, torch.int32),
    )


@cache
def _divisor(number: int, limit: int) -> int:
    """The largest up to `limit`."""
    return next((divisor for divisor in range(min(number, limit), 0, -1) if number % divisor == 0), 1)


@cache
def _basis(length: int, device: torch.device) -> Tensor:
    """The orthonormal DCT-II as a matrix [frequency, place]."""
    places, frequencies = torch.arange(length, dtype=torch.float64) + 0.5, torch.arange(length, dtype=torch.float64)
    basis = math.sqrt(2 / length) * torch.cos(math.pi / length * frequencies[:, None] * places)
    basis[0] /= math.sqrt(2)
    return basis.to(device, torch.float32)


SYSTEMS["demo"] = Composition("Peng et al., 2024", exchange={"kind": "demo"})
