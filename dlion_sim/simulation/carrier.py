"""What the engine asks of whatever carries messages, and is told by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from dlion_sim.assembly import Transfer
from dlion_sim.protocol.messages import Message
from dlion_sim.results import QueuesRow

Sent = Callable[[Transfer], None]
"""Called with a message whose last byte has been sent."""
Timed = Callable[[Transfer, float, float], None]
"""Called with a message once its sender knows that it arrives: how many seconds links took for it, and when its last
byte had been sent."""
Delivered = Callable[[int, Message], None]
"""Called with receiver and message."""


class Dropped(NamedTuple):
    """Messages that will never be there."""

    begun: list[tuple[Transfer, float]]
    """Those that had begun to cross links, and how many bytes of each have."""
    others: int
    """How many more there were."""


class Carrier(Protocol):
    """Messages under way, of which it tells what they come to."""

    def send(self, receiver: int, message: Message) -> None:
        """Queue a message."""

    def under_way(self) -> Iterator[tuple[Transfer, float]]:
        """Every message that has begun to leave and of which nothing was told as yet, and how many bytes of it have."""

    def queues(self) -> Sequence[QueuesRow]:
        """What has waited for each link since this was last asked."""

    @property
    def is_stuck(self) -> bool:
        """Whether no message under way will ever be there: each waits for a link that is gone for good."""

    def bytes_per_second(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        """What messages of each (sender, receiver) could have now: alone, and if all send at once."""


@runtime_checkable
class CuttingCarrier(Carrier, Protocol):
    """One whose messages can be lost, as those are who send and receive them."""

    def cut(self, one: int, other: int) -> Dropped:
        """Drop all between two, in both directions, whose last byte has not left, and tell what that was."""
