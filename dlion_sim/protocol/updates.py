"""What gradients become on their way: computed here, sent there, applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from dlion_sim.protocol.messages import Contribution, MalformedMessageError, Message


@dataclass(frozen=True, slots=True)
class LocalGradient:
    """A worker's own mean gradient [P] of `iteration`, from `batch_size` samples, computed in `seconds`."""

    iteration: int
    batch_size: int
    gradient: Tensor
    seconds: float
    factor: float
    """By which it enters the worker's own update."""
    time: float
    """When it was ready."""


@dataclass(frozen=True, slots=True)
class Update:
    """A contribution to apply, the own or a peer's; the tensors are those of its message."""

    sender: int
    body: Contribution
    tensors: tuple[Tensor, ...]

    def add_to(self, total: Tensor, factor: float) -> None:
        """Add `factor` times the contribution to `total` [P]; entries that it lacks count as 0."""
        match self.tensors:
            case (values,):
                total[self.body.offset : self.body.offset + len(values)].add_(values, alpha=factor)
            case (indices, values):
                total.index_add_(0, indices, values, alpha=factor)

    def is_whole(self, size: int) -> bool:
        """Whether it is all `size` entries."""
        return len(self.tensors) == 1 and len(self.tensors[0]) == size

    def check_whole(self, size: int) -> None:
        """Raise MalformedMessageError unless it is all `size` entries."""
        if not self.is_whole(size):
            raise MalformedMessageError("a contribution of other entries than the exchange takes")

    @property
    def message(self) -> Message:
        """The message that carries it."""
        return Message(self.sender, self.body, self.tensors)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What an exchange makes of a local gradient: what the worker itself applies, and what it sends to whom."""

    own: Update | None
    """None where nothing of it is left to apply here."""
    messages: Sequence[tuple[int, Message]]
