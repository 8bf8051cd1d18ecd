"""A carrier between participants who may be lost: nothing comes through but over a connection that is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from dlion_sim.assembly import Transfer
from dlion_sim.protocol.membership_messages import State
from dlion_sim.protocol.messages import Message
from dlion_sim.results import QueuesRow
from dlion_sim.simulation.carrier import Carrier, CuttingCarrier, Delivered, Dropped, Sent, Timed
from dlion_sim.simulation.changes import CapacityChanged
from dlion_sim.simulation.churn import Churn
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.routing import Routing


@dataclass
class Counts:
    """What became of messages; the others are under way."""

    sent: int = 0
    delivered: int = 0
    cut: int = 0
    """As an end or the link was lost."""
    refused: int = 0
    """As the receiver was gone already, of which the sender did not know."""

    @property
    def told(self) -> dict[str, int]:
        """As `Messages` in the summary."""
        under_way = self.sent - self.delivered - self.cut - self.refused
        return {**asdict(self), "under_way": under_way}


class GuardedCarrier:
    """The carrier that `make` makes, of which only `delivered` is told otherwise, and what it comes to in `counts`."""

    def __init__(
        self,
        make: Callable[..., Carrier],
        churn: Churn,
        event_queue: EventQueue,
        routing: Routing,
        *,
        sent: Sent,
        timed: Timed,
        delivered: Delivered,
        changed: CapacityChanged,
    ) -> None:
        self._churn = churn
        self._sent, self._delivered = sent, delivered
        carrier = make(
            event_queue, routing, sent=self._on_sent, timed=timed, delivered=self._on_delivered, changed=changed
        )
        assert isinstance(carrier, CuttingCarrier), "scenarios with others are refused"
        self._carrier = carrier
        self.counts = Counts()
        self.fetched: dict[int, int] = {}
        """Bytes of others' state that have been sent to each receiver since that was last asked."""

    def send(self, receiver: int, message: Message) -> None:
        """Queue a message, if there is a connection."""
        self.counts.sent += 1
        if self._churn.reaches(message.sender, receiver):
            self._carrier.send(receiver, message)
        else:
            self.counts.refused += 1

    def cut(self, one: int, other: int) -> Dropped:
        """Drop all between two, in both directions, whose last byte has not left, and tell what that was."""
        dropped = self._carrier.cut(one, other)
        self.counts.cut += len(dropped.begun) + dropped.others
        return dropped

    def under_way(self) -> Iterator[tuple[Transfer, float]]:
        """As the carrier."""
        return self._carrier.under_way()

    def queues(self) -> Sequence[QueuesRow]:
        """As the carrier."""
        return self._carrier.queues()

    @property
    def is_stuck(self) -> bool:
        """As the carrier."""
        return self._carrier.is_stuck

    def bytes_per_second(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        """As the carrier."""
        return self._carrier.bytes_per_second(pairs)

    def _on_sent(self, transfer: Transfer) -> None:
        if isinstance(transfer.message.body, State):
            self.fetched[transfer.receiver] = self.fetched.get(transfer.receiver, 0) + transfer.size
        self._sent(transfer)

    def _on_delivered(self, receiver: int, message: Message) -> None:
        if self._churn.hears(receiver, message.sender):
            self.counts.delivered += 1
            self._delivered(receiver, message)
        else:
            self.counts.cut += 1
