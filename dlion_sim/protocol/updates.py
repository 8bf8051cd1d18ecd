"""What gradients become on their way: computed here, sent there, applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dlion_sim.protocol.faults import MalformedMessageError
from dlion_sim.protocol.messages import Contribution, Message


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


@dataclass(frozen=True)
class Update(Message):
    """A message that contributes: the own one or a peer's, as it is applied."""

    body: Contribution

    @classmethod
    def of(cls, message: Message) -> Update:
        """A message whose body is a `Contribution`, as an update."""
        assert isinstance(message.body, Contribution)
        return message if isinstance(message, cls) else cls(message.sender, message.body, message.tensors)

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

    def check_whole(self, size: int, dtype: torch.dtype = torch.float32) -> None:
        """Raise MalformedMessageError unless it is all `size` entries, of that type."""
        if not self.is_whole(size) or self.tensors[0].dtype != dtype:
            raise MalformedMessageError("a contribution of other entries than the exchange takes")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What an exchange makes of a local gradient: what the worker itself applies, and what it sends to whom."""

    own: Update | None
    """None where nothing of it is left to apply here."""
    messages: Sequence[tuple[int, Message]]
    """Each with the peer that it is for; they leave in this order."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """What there is to apply at the end of an iteration."""

    iteration: int
    own: Update | None
    """What `Outgoing` kept for the worker itself; None also for iterations that were left out."""
    received: Sequence[Update]
    """What peers contributed and is due, in the order in which it came."""
    factor: Callable[[Contribution], float]
    """By which a contribution enters the mean over all workers."""
    peers: Sequence[int]
    """Those whose contributions count in this iteration, whether or not they were received."""
