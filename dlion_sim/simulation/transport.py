"""Reliable, ordered delivery between workers, as over TCP: one queue per channel of each ordered pair."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dlion_sim.protocol.messages import Message
from dlion_sim.simulation.agenda import Agenda
from dlion_sim.simulation.flows import FlowNetwork
from dlion_sim.simulation.sharing import max_min_rates
from dlion_sim.simulation.topology import BITS_PER_BYTE, Topology

Sent = Callable[[int, int, Message, float], None]
"""Called with sender, receiver, message and the seconds from its first byte to its last, queueing apart."""
Delivered = Callable[[int, Message], None]
"""Called with receiver and message."""


CapacityChanged = Callable[[], None]


@dataclass(frozen=True)
class Framing:
    """What a protocol adds to messages."""

    data: float
    """Bytes on a link for each byte of a message."""
    acknowledgements: float
    """Bytes that go back for each byte on a link."""


TCP = Framing(1514 / 1448, 66 / (2 * 1514))
"""Segments with timestamps, over IPv4 in full Ethernet frames; an acknowledgement for every second one (RFC 1122)."""


_Queue = tuple[int, int, bool]
"""Of which messages: sender, receiver, and whether they are bulk."""


class Transport:
    """Bulk messages wait for the bulk message before them, control messages for the control message before them.

    The queue's head is a flow over the pair's route. When its last byte has been sent, the next one starts, and after
    the route's latency it is delivered.
    """

    def __init__(
        self,
        agenda: Agenda,
        topology: Topology,
        *,
        sent: Sent,
        delivered: Delivered,
        changed: CapacityChanged,
        framing: Framing = TCP,
    ) -> None:
        self._agenda = agenda
        self._topology = topology
        self._framing = framing
        capacities = [schedule.value_at(0) / BITS_PER_BYTE for schedule in topology.capacities]
        self._network = FlowNetwork(agenda, capacities, framing.acknowledgements)
        self._busy: set[_Queue] = set()
        """Those whose head is under way."""
        self._waiting: dict[_Queue, deque[Message]] = {}
        """What is behind the head, if anything."""
        self._sent = sent
        self._delivered = delivered
        self._changed = changed
        for link in range(len(capacities)):
            self._plan_change(link, 1)

    def send(self, receiver: int, message: Message) -> None:
        """Queue a message."""
        queue = message.sender, receiver, message.body.bulk
        if queue in self._busy:
            self._waiting.setdefault(queue, deque()).append(message)
        else:
            self._busy.add(queue)
            self._start(queue, message)

    def capacities(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        """What messages of each (sender, receiver) could have now: alone, and if all send at once (bytes a second)."""
        routes = [self._topology.route(*pair).links for pair in pairs]
        ways_back = [self._topology.route(receiver, sender).links for sender, receiver in pairs]
        links = self._network.capacities
        shared = max_min_rates(routes, links, ways_back, self._framing.acknowledgements)
        alone = (min(links[link] for link in route) for route in routes)
        data = self._framing.data
        return [(one / data, other / data) for one, other in zip(alone, shared, strict=True)]

    def _start(self, queue: _Queue, message: Message) -> None:
        """Send the head of a queue."""
        sender, receiver, _ = queue
        links, latency = self._topology.route(sender, receiver)
        ended = partial(self._end, queue, message, latency, self._agenda.now)
        if links:
            way_back = self._topology.route(receiver, sender).links if self._framing.acknowledgements else ()
            self._network.start(links, message.size * self._framing.data, ended, way_back)
        else:
            self._agenda.after(0.0, ended)

    def _end(self, queue: _Queue, message: Message, latency: float, began: float) -> None:
        """The last byte of a queue's head has been sent."""
        sender, receiver, _ = queue
        waiting = self._waiting.get(queue)
        if waiting:
            self._start(queue, waiting.popleft())
            if not waiting:
                del self._waiting[queue]
        else:
            self._busy.remove(queue)
        self._agenda.after(latency, partial(self._delivered, receiver, message))
        self._sent(sender, receiver, message, self._agenda.now - began)

    def _plan_change(self, link: int, number: int) -> None:
        """Plan the `number`-th change of a link's capacity, if there is one."""
        change = self._topology.capacities[link].change(number)
        if change is not None:
            time, capacity = change
            self._agenda.after(time - self._agenda.now, partial(self._change, link, number, capacity))

    def _change(self, link: int, number: int, capacity: float) -> None:
        self._network.set_capacity(link, capacity / BITS_PER_BYTE)
        self._changed()
        self._plan_change(link, number + 1)
