"""Gradients on their way: as computed, as sent, and as applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dlion_sim.protocol.messages import Contribution, MalformedMessageError, Message

SPARSE_ENTRY_BYTES = 8
"""An int32 index and a float32 value."""
DENSE_ENTRY_BYTES = 4
"""A float32 value."""
HEADER_BYTES = 64
"""An upper bound of the header of a gradient message."""


@dataclass(frozen=True, slots=True)
class LocalGradient:
    """A worker's own mean gradient [P] of `iteration`, from `batch_size` samples, computed in `seconds`."""

    iteration: int
    batch_size: int
    gradient: Tensor
    seconds: float
    factor: float
    """Its weight in the worker's own update."""
    time: float
    """When it was ready."""


@dataclass(frozen=True)
class Update(Message):
    """A contribution to apply: the worker's own or a peer's."""

    body: Contribution
    _read: Tensor | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, message: Message) -> Update:
        """A message whose body is a `Contribution`, as an update."""
        assert isinstance(message.body, Contribution)
        return message if isinstance(message, cls) else cls(message.sender, message.body, message.tensors)

    def add_to(self, total: Tensor, factor: float) -> None:
        """Add `factor` times the contribution to `total` [P]; missing entries count as 0."""
        match self.tensors:
            case (values,):
                total[self.body.offset : self.body.offset + len(values)].add_(values, alpha=factor)
            case (indices, values):
                total.index_add_(0, indices, values, alpha=factor)

    def read(self, reader: Callable[[tuple[Tensor, ...]], Tensor]) -> Tensor:
        """What a reader makes of its tensors: called once, as all workers of a process read a message the same way.

        Not to be written.
        """
        if self._read is None:
            object.__setattr__(self, "_read", reader(self.tensors))
        assert self._read is not None
        return self._read

    def is_whole(self, size: int) -> bool:
        return len(self.tensors) == 1 and len(self.tensors[0]) == size

    def check_whole(self, size: int, dtype: torch.dtype = torch.float32) -> None:
        """Raise MalformedMessageError unless it has all `size` entries, of that type."""
        if not self.is_whole(size) or self.tensors[0].dtype != dtype:
            raise MalformedMessageError("a contribution of other entries than the exchange expects")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """The result of an exchange for a local gradient: the worker's own update, and messages to peers."""

    own: Update | None
    """None if the worker applies nothing at the end of the iteration."""
    messages: Sequence[tuple[int, Message]]
    """(receiver, message) in the order of sending."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """The updates to apply at the end of an iteration."""

    iteration: int
    own: Update | None
    """`Outgoing.own`; None also for skipped iterations."""
    received: Sequence[Update]
    """Peers' contributions that are due, in the order of arrival."""
    factor: Callable[[Contribution], float]
    """A contribution's weight in the mean over all workers."""
    peers: Sequence[int]
    """The peers whose contributions count in this iteration, received or not."""

    @property
    def updates(self) -> list[Update]:
        """The own one, if any, and the received ones, in the order of senders."""
        return sorted([*([self.own] if self.own else []), *self.received], key=lambda update: update.sender)


def dense_is_smaller(selected: int, size: int) -> bool:
    """Whether all `size` entries without indices take no more bytes than `selected` entries with indices."""
    return SPARSE_ENTRY_BYTES * selected >= DENSE_ENTRY_BYTES * size
