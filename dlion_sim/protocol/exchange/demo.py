"""The strongest frequencies of momentum, and steps by signs (DeMo: Peng et al., 2024, arXiv:2411.19870)."""

from __future__ import annotations

import math
from functools import cache

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
        self._momentum = torch.zeros_like(setup.replica.parameters)

    @classmethod
    def needs_lockstep(cls, parameters: Parameters) -> str:
        """The sign of a part of a sum is not a part of its sign."""
        return "exchange: demo"

    def outgoing(self, own: LocalGradient) -> Outgoing:
        chosen, replica = self.parameters, self.setup.replica
        # In the paper by the learning rate, whose constant part the signs would take off again.
        self._momentum.mul_(chosen.decay).add_(own.gradient, alpha=replica.decay)
        coefficients = dct(self._momentum, replica.layout, chosen.tile)
        indices = strongest(coefficients, replica.layout, chosen.tile, chosen.entries)
        update = self.entries(own, indices, coefficients.index_select(0, indices))
        sent = torch.zeros_like(coefficients)
        update.add_to(sent, 1.0)
        self._momentum -= inverse_dct(sent, replica.layout, chosen.tile)
        return Outgoing(update, self.to_all(update))

    def apply(self, incoming: Incoming) -> int:
        replica = self.setup.replica
        if terms := [(update, incoming.factor(update.body)) for update in incoming.updates]:
            total = self.setup.sums.of(terms, replica.layout.size)
            replica.step(self.setup.sums.derived(total, self.parameters, self._signs))
        return len(incoming.received)

    def _signs(self, total: Tensor) -> Tensor:
        merged = inverse_dct(total, self.setup.replica.layout, self.parameters.tile)
        return merged.sign_().mul_(self.parameters.scale)


def dct(values: Tensor, layout: Layout, tile: int) -> Tensor:
    """The orthonormal DCT-II in two dimensions of each tile of each variable of `values` [P], tile after tile [P]."""
    coefficients = []
    for variable, shape in zip(values.split_with_sizes(layout.sizes), layout.shapes, strict=True):
        down, p, across, q = _tiling(shape, tile)
        tiles = variable.view(down, p, across, q).transpose(1, 2)
        coefficients.append((_basis(p, values.device) @ tiles @ _basis(q, values.device).T).reshape(-1))
    return torch.cat(coefficients)


def inverse_dct(coefficients: Tensor, layout: Layout, tile: int) -> Tensor:
    """The values [P] whose `dct` is that."""
    values = []
    for variable, shape in zip(coefficients.split_with_sizes(layout.sizes), layout.shapes, strict=True):
        down, p, across, q = _tiling(shape, tile)
        tiles = variable.view(down, across, p, q)
        found = _basis(p, coefficients.device).T @ tiles @ _basis(q, coefficients.device)
        values.append(found.transpose(1, 2).reshape(-1))
    return torch.cat(values)


def strongest(coefficients: Tensor, layout: Layout, tile: int, count: int) -> Tensor:
    """Indices (int32, increasing) of the `count` largest coefficients [P] by magnitude of each tile, or of all."""
    indices, begin = [], 0
    for variable, shape in zip(coefficients.split_with_sizes(layout.sizes), layout.shapes, strict=True):
        down, p, across, q = _tiling(shape, tile)
        places = variable.view(down * across, p * q).abs().topk(min(count, p * q), dim=1).indices.sort(dim=1).values
        starts = torch.arange(down * across, device=coefficients.device) * (p * q) + begin
        indices.append((places + starts[:, None]).reshape(-1))
        begin += len(variable)
    return torch.cat(indices).to(torch.int32)


def _tiling(shape: tuple[int, ...], tile: int) -> tuple[int, int, int, int]:
    """Tiles down, their rows, tiles across, their columns, of a variable as a matrix."""
    rows = shape[0] if len(shape) > 1 else 1
    columns = math.prod(shape) // max(1, rows)
    p, q = (_divisor(length, tile) for length in (rows, columns))
    return rows // p, p, columns // q, q


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
