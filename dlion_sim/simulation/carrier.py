"""The interface between the engine and what carries its messages, and scheduled changes of links, which all have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from dlion_sim.assembly import Transfer
from dlion_sim.protocol.messages import Message
from dlion_sim.results import QueuesRow
from dlion_sim.scenario import Schedule
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.routing import BITS_PER_BYTE


class Listener:
    """The owner of a carrier, which calls these methods."""

    def sent(self, transfer: Transfer) -> None:
        """A message has been sent to its last byte."""

    def timed(self, transfer: Transfer, seconds: float, left: float) -> None:
        """The sender knows that a message arrives: links took `seconds` for it, and its last byte was sent at `left`
        (s)."""

    def delivered(self, receiver: int, message: Message) -> None:
        """A receiver has got a message."""

    def changed(self) -> None:
        """The capacity of a link has changed."""


class Dropped(NamedTuple):
    """Messages that will never be delivered."""

    begun: list[tuple[Transfer, float]]
    """Messages whose transmission had begun, with the bytes of each that links have carried."""
    others: int
    """The number of messages that were queued behind them."""


class Carrier(Protocol):
    """Carries messages and reports to a `Listener`."""

    def send(self, receiver: int, message: Message) -> None:
        """Queue a message."""

    def under_way(self) -> Iterator[tuple[Transfer, float]]:
        """Messages whose transmission has begun and that were not reported by `timed`, with the bytes that links have
        carried. In packets, some may have been sent, or delivered, and not be acknowledged."""

    def queues(self) -> Sequence[QueuesRow]:
        """The queues of each link in the interval since the last call."""

    @property
    def is_stuck(self) -> bool:
        """Whether no message under way will ever be delivered: each waits for a link that is down for good."""

    def bytes_per_second(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        """The present rate for each (sender, receiver): alone, and if all send at once."""


class CapacityChanges:
    """Scheduled changes of links' `capacities_bps`: calls `resize` with link and bytes per second, and then
    `changed`."""

    def __init__(
        self,
        event_queue: EventQueue,
        capacities_bps: Sequence[Schedule],
        *,
        resize: Callable[[int, float], None],
        changed: Callable[[], None],
    ) -> None:
        self._event_queue = event_queue
        self._capacities_bps = capacities_bps
        self._resize = resize
        self._changed = changed
        for link in range(len(capacities_bps)):
            self._schedule(link, 1)

    def is_down_for_good(self, link: int) -> bool:
        return math.isinf(self._capacities_bps[link].finish_time(self._event_queue.now, 1.0))

    def _schedule(self, link: int, number: int) -> None:
        """Schedule the `number`-th change of a link's capacity, if there is one."""
        change = self._capacities_bps[link].change(number)
        if change is not None:
            time, capacity_bps = change
            change_it = partial(self._apply, link, number, capacity_bps)
            self._event_queue.after(time - self._event_queue.now, change_it, background=True)

    def _apply(self, link: int, number: int, capacity_bps: float) -> None:
        self._resize(link, capacity_bps / BITS_PER_BYTE)
        self._changed()
        self._schedule(link, number + 1)
