"""Reliable, ordered delivery between workers, as over TCP: one queue per channel of each ordered pair."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.simulation.agenda import Agenda
from dlion_sim.simulation.flows import FlowNetwork
from dlion_sim.simulation.sharing import max_min_rates
from dlion_sim.simulation.topology import BITS_PER_BYTE, Route, Topology

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


@dataclass
class _Queue:
    """Messages of one channel between two participants, and the links that they load, going and by what comes back."""

    sender: int
    receiver: int
    route: Route
    way_back: tuple[int, ...]
    messages: deque[Message] = field(default_factory=deque)


class Transport:
    """A message waits for the one of its channel before it.

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
        self._queues: dict[tuple[int, int, Channel], _Queue] = {}
        self._sent = sent
        self._delivered = delivered
        self._changed = changed
        for link in range(len(capacities)):
            self._plan_change(link, 1)

    def send(self, receiver: int, message: Message) -> None:
        """Queue a message."""
        key = message.sender, receiver, message.body.channel
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = self._new_queue(message.sender, receiver)
        queue.messages.append(message)
        if len(queue.messages) == 1:
            self._start(queue)

    @property
    def is_stuck(self) -> bool:
        """Whether no message under way will ever be there: each waits for a link that is gone for good."""
        if self._network.is_moving:
            return False
        waiting = (queue.route.links for queue in self._queues.values() if queue.messages)
        return all(any(map(self._is_gone, links)) for links in waiting)

    def capacities(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        """What messages of each (sender, receiver) could have now: alone, and if all send at once (bytes a second)."""
        routes = [self._topology.route(*pair).links for pair in pairs]
        ways_back = [self._topology.route(receiver, sender).links for sender, receiver in pairs]
        links = self._network.capacities
        shared = max_min_rates(routes, links, ways_back, self._framing.acknowledgements)
        alone = (min(links[link] for link in route) for route in routes)
        data = self._framing.data
        return [(one / data, other / data) for one, other in zip(alone, shared, strict=True)]

    def _new_queue(self, sender: int, receiver: int) -> _Queue:
        way_back = self._topology.route(receiver, sender).links if self._framing.acknowledgements else ()
        return _Queue(sender, receiver, self._topology.route(sender, receiver), way_back)

    def _start(self, queue: _Queue) -> None:
        sent = partial(self._end, queue, self._agenda.now)
        if queue.route.links:
            size = queue.messages[0].size * self._framing.data
            self._network.start(queue.route.links, size, sent, queue.way_back)
        else:
            self._agenda.after(0.0, sent)

    def _end(self, queue: _Queue, began: float) -> None:
        """The last byte of the queue's head has been sent."""
        message = queue.messages.popleft()
        if queue.messages:
            self._start(queue)
        self._agenda.after(queue.route.latency, partial(self._delivered, queue.receiver, message))
        self._sent(queue.sender, queue.receiver, message, self._agenda.now - began)

    def _plan_change(self, link: int, number: int) -> None:
        """Plan the `number`-th change of a link's capacity, if there is one."""
        change = self._topology.capacities[link].change(number)
        if change is not None:
            time, capacity = change
            change_it = partial(self._change, link, number, capacity)
            self._agenda.after(time - self._agenda.now, change_it, background=True)

    def _change(self, link: int, number: int, capacity: float) -> None:
        self._network.set_capacity(link, capacity / BITS_PER_BYTE)
        self._changed()
        self._plan_change(link, number + 1)

    def _is_gone(self, link: int) -> bool:
        """Whether a link will never carry a bit again."""
        return math.isinf(self._topology.capacities[link].finish_time(self._agenda.now, 1.0))
