"""A carrier between participants who may be lost: nothing comes through but over a connection that is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dlion_sim.assembly import Transfer
from dlion_sim.protocol.messages import Message
from dlion_sim.results import QueuesRow
from dlion_sim.simulation.agenda import Agenda
from dlion_sim.simulation.carrier import Carrier, Cut, Delivered, Sent, Timed
from dlion_sim.simulation.changes import CapacityChanged
from dlion_sim.simulation.presence import Presence
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


class GuardedCarrier:
    """The carrier that `make` makes, of which only `delivered` is told otherwise, and what it comes to in `counts`."""

    def __init__(
        self,
        make: Callable[..., Carrier],
        presence: Presence,
        agenda: Agenda,
        routing: Routing,
        *,
        sent: Sent,
        timed: Timed,
        delivered: Delivered,
        changed: CapacityChanged,
    ) -> None:
        self._presence = presence
        self._deliver = delivered
        self._carrier = make(
            agenda, routing, sent=sent, timed=timed, delivered=self._on_delivered, changed=changed
        )
        self.counts = Counts()

    def send(self, receiver: int, message: Message) -> None:
        """Queue a message, if there is a connection."""
        self.counts.sent += 1
        if self._presence.reaches(message.sender, receiver):
            self._carrier.send(receiver, message)
        else:
            self.counts.refused += 1

    def cut(self, one: int, other: int) -> Cut:
        """Drop all between two, in both directions, whose last byte has not left, and tell what that was."""
        cut = self._carrier.cut(one, other)
        self.counts.cut += len(cut.begun) + cut.others
        return cut

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

    def _on_delivered(self, receiver: int, message: Message) -> None:
        if self._presence.hears(receiver, message.sender):
            self.counts.delivered += 1
            self._deliver(receiver, message)
        else:
            self.counts.cut += 1
