"""Outer steps with few values in two bits each (SparseLoCo: Sarfi et al., 2025, arXiv:2508.15706)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.messages import Contribution, MalformedMessageError, Shapes, Stage
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing, Update

CHUNK = 4096
"""Entries of a chunk, whose indices have 12 bits."""
LEVELS = 4
"""Values that are told apart, in two bits."""
_WIDTH = 6.0
"""What the levels span, in standard deviations (as in the code of templar; recalled)."""


class Packed(Contribution, frozen=True, array_like=True):
    """The selected entries of a pseudo-gradient: levels (float32 [4]); then of each entry the level in 2 bits and its
    index in the chunk in 12 bits, chunk after chunk (uint8). None may be missing: all take the same outer step."""

    wire_kind: ClassVar[str] = "packed"
    stage: ClassVar[Stage | None] = None

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return (
            len(shapes) == 2 and shapes[0] == ("f4", LEVELS) and shapes[1][0] == "u1" and shapes[1][1] <= 2 * parameters
        )


@register("exchange", "sparse_loco")
class SparseLoCoExchange(Exchange):
    """After local steps: e <- b e + start - parameters; the largest entries of each chunk of e are sent, in two bits,
    and taken off e; all continue from start <- start - a * mean of what was sent.

    Chunks are of 4,096 successive parameters (in the paper, tiles of a matrix). What is not sent stays in e.
    """

    receives = (Packed,)

    class Parameters(ChoiceParameters):
        """Defaults: those of its training of 70 billion parameters."""

        period: int = Field(30, ge=1, description="Iterations between exchanges.")
        density: float = Field(1 / 64, gt=0, le=1, description="Share of a chunk's entries that is sent, at least one.")
        decay: float = Field(0.95, ge=0, le=1, description="Of the residual, in each exchange: b.")
        outer_learning_rate: float = Field(1.0, gt=0, description="a.")

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._start = setup.replica.parameters.clone()
        self._residual = torch.zeros_like(self._start)
        self.common = (self._start,)

    @classmethod
    def needs_lockstep(cls, parameters: Parameters) -> str:
        """A worker without some of the pseudo-gradients would stay apart."""
        return "exchange: sparse_loco"

    def covers(self, tag: int) -> int:
        return tag + self.parameters.period - (tag + 1) % self.parameters.period - 1

    def arrived(self, update: Update) -> None:
        if (update.body.iteration + 1) % self.parameters.period:
            raise MalformedMessageError("a pseudo-gradient in an iteration in which none is sent")
        self._values(update)

    def outgoing(self, own: LocalGradient) -> Outgoing:
        replica = self.setup.replica
        replica.step(own.gradient)
        if (own.iteration + 1) % self.parameters.period:
            return Outgoing(None, [])
        self._residual.mul_(self.parameters.decay).add_(self._start - replica.parameters)
        body = Packed(own.iteration, own.batch_size)
        update = Update(self.setup.worker, body, pack(self._residual, self.parameters.density))
        self._residual -= self._values(update)
        return Outgoing(update, self.to_all(update))

    def apply(self, incoming: Incoming) -> int:
        updates = incoming.updates
        for update in updates:
            self._start.add_(self._values(update), alpha=-self.parameters.outer_learning_rate / len(updates))
        if updates:
            self.setup.replica.write(0, self._start)
        return len(incoming.received)

    def _values(self, update: Update) -> Tensor:
        return update.read(self._unpacked)

    def _unpacked(self, tensors: tuple[Tensor, ...]) -> Tensor:
        return unpack(tensors, self.setup.replica.layout.size, self.parameters.density).to(self._start.device)


def pack(values: Tensor, density: float) -> tuple[Tensor, Tensor]:
    """The largest entries of each chunk of `values` [P]: levels (float32 [4]) and bytes (uint8), as in `Packed`."""
    size = len(values)
    counts = _counts(size, density)
    chunks = torch.nn.functional.pad(values, (0, -size % CHUNK)).view(-1, CHUNK)
    magnitudes = torch.nn.functional.pad(values.abs(), (0, -size % CHUNK), value=-1.0).view(-1, CHUNK)
    places = magnitudes.topk(int(counts.max()), dim=1).indices
    places = torch.cat([row[:count] for row, count in zip(places, counts.tolist(), strict=True)])
    rows = torch.repeat_interleave(torch.arange(len(counts)), torch.from_numpy(counts)).to(places.device)
    chosen = chunks[rows, places]
    spread = chosen.std(correction=0).clamp(min=torch.finfo(torch.float32).tiny)
    places_in_width = (chosen - chosen.mean()) / spread * (LEVELS / _WIDTH) + LEVELS / 2
    # Not a number has a level too: in a run that diverges, the level's mean carries it on.
    levels = places_in_width.nan_to_num().floor().clamp(0, LEVELS - 1).long()
    sums = torch.zeros(LEVELS, device=values.device).index_add_(0, levels, chosen)
    means = sums / torch.bincount(levels, minlength=LEVELS).clamp(min=1)
    codes = (levels * CHUNK + places).cpu().numpy()
    bits = (codes[:, None] >> np.arange(14)) & 1
    return means, torch.from_numpy(np.packbits(bits.astype(np.uint8).reshape(-1)))


def unpack(tensors: tuple[Tensor, ...], size: int, density: float) -> Tensor:
    """The values [size] that were packed, 0 elsewhere. Raises MalformedMessageError for other numbers of bytes or
    indices."""
    means, packed = tensors
    counts = _counts(size, density)
    total = int(counts.sum())
    if len(packed) != -(-14 * total // 8):
        raise MalformedMessageError("a contribution of another number of entries than the exchange expects")
    bits = np.unpackbits(packed.cpu().numpy(), count=14 * total).reshape(total, 14)
    codes = bits.astype(np.int64) @ (1 << np.arange(14))
    places = np.repeat(np.arange(len(counts)) * CHUNK, counts) + codes % CHUNK
    if len(places) and (places.max() >= size or len(np.unique(places)) != total):
        raise MalformedMessageError("indices that are beyond the model or not distinct")
    values = torch.zeros(size)
    values[torch.from_numpy(places)] = means.cpu()[torch.from_numpy(codes // CHUNK)]
    return values


def _counts(size: int, density: float) -> np.ndarray:
    """The entries that are sent of each chunk."""
    lengths = np.full(-(-size // CHUNK), CHUNK)
    lengths[-1] = size - CHUNK * (len(lengths) - 1)
    return np.maximum(1, np.round(lengths * density)).astype(np.int64)


SYSTEMS["sparse_loco"] = Composition("Sarfi et al., 2025", exchange={"kind": "sparse_loco"})
