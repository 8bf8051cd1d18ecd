"""Reliable, ordered delivery between workers, as over TCP: one queue per channel of each ordered pair."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from dlion_sim.assembly import Transfer
from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.results import QueuesRow
from dlion_sim.simulation.carrier import Delivered, Dropped, Sent, Timed
from dlion_sim.simulation.changes import CapacityChanged, Changes
from dlion_sim.simulation.connections import Connections
from dlion_sim.simulation.event_queue import Call, EventQueue
from dlion_sim.simulation.flows import FlowNetwork
from dlion_sim.simulation.routing import BITS_PER_BYTE, Routing
from dlion_sim.simulation.sharing import max_min_rates
from dlion_sim.simulation.tcp import IDEAL, TcpModel

_Queue = tuple[int, int, Channel]
"""Of which messages: sender, receiver, channel."""
_Head = tuple[Transfer, int | _Queue | None]
"""What is under way, and its flow's number or connection; None if it crosses no link."""


class Transport:
    """A message waits for the one of its channel before it.

    The queue's head is a flow over the pair's route; or flows one after another, where windows open only slowly. When
    its last byte has been sent, the next one starts, and after the route's latency it is delivered; or at once, where
    latencies pass before a message goes into its queue. Each byte of its tensors crosses links as `scale` bytes; to
    those who ask how fast these are, they seem so much slower.
    """

    def __init__(
        self,
        event_queue: EventQueue,
        routing: Routing,
        *,
        sent: Sent,
        timed: Timed,
        delivered: Delivered,
        changed: CapacityChanged,
        tcp: TcpModel = IDEAL,
        scale: float = 1.0,
    ) -> None:
        self._event_queue = event_queue
        self._routing = routing
        self._scale = scale
        self._tcp = tcp
        self._framing = framing = tcp.framing
        bytes_per_second = [capacity_bps.value_at(0) / BITS_PER_BYTE for capacity_bps in routing.capacities_bps]
        is_weighted = tcp.sharing_size is not None
        self._network = FlowNetwork(event_queue, bytes_per_second, framing.acknowledgements, is_weighted=is_weighted)
        slow_start = tcp.slow_start
        self._connections = Connections(event_queue, self._network, slow_start) if slow_start else None
        """Of each queue, where windows open only slowly."""
        self._has_windows = slow_start is not None or tcp.window < math.inf
        self._heads: dict[_Queue, _Head] = {}
        self._waiting: dict[_Queue, deque[Message]] = {}
        """What is behind the head, if anything."""
        self._coming: dict[_Queue, deque[Message]] = {}
        """What a latency passes for before it goes into its queue."""
        self._sent = sent
        self._timed = timed
        self._delivered = delivered
        self._changes = Changes(event_queue, routing.capacities_bps, resize=self._network.resize, changed=changed)

    def send(self, receiver: int, message: Message) -> None:
        """Queue a message."""
        queue = message.sender, receiver, message.body.channel
        factor = self._tcp.latency_factor
        if factor is None:
            self._queue(queue, message)
        else:
            latency = self._routing.route(message.sender, receiver).latency
            coming = self._coming.setdefault(queue, deque())
            coming.append(message)
            self._event_queue.after(factor * latency, partial(self._come, queue, coming))

    def cut(self, one: int, other: int) -> Dropped:
        """Drop all between two, in both directions, whose last byte has not left, and tell what that was."""
        queues = [(*ends, channel) for ends in ((one, other), (other, one)) for channel in Channel]
        heads = [self._heads[queue] for queue in queues if queue in self._heads]
        begun = list(self._carried([head for head in heads if head[1] is not None]))
        for _, flow in heads:
            if isinstance(flow, int):
                self._network.cut(flow)
        others = len(heads) - len(begun)
        for queue in queues:
            self._heads.pop(queue, None)
            if self._connections is not None:
                self._connections.cut(queue)
            others += len(self._waiting.pop(queue, ()))
            if coming := self._coming.pop(queue, None):
                others += len(coming)
                coming.clear()
        return Dropped(begun, others)

    def _come(self, queue: _Queue, coming: deque[Message]) -> None:
        """The first of those that are coming is there, unless they were cut."""
        if coming:
            self._queue(queue, coming.popleft())

    def _queue(self, queue: _Queue, message: Message) -> None:
        if queue in self._heads:
            self._waiting.setdefault(queue, deque()).append(message)
        else:
            self._start(queue, message)

    def under_way(self) -> Iterator[tuple[Transfer, float]]:
        """Every message that has begun to cross links and has not been sent whole, and how many bytes of it have."""
        return self._carried([head for head in self._heads.values() if head[1] is not None])

    def _carried(self, heads: Sequence[_Head]) -> Iterator[tuple[Transfer, float]]:
        """How many bytes of each have crossed links."""
        # Those that start in this instant get their rates only at its end.
        begun = [(transfer, flow) for transfer, flow in heads if transfer.began < self._event_queue.now]
        flows: Any = self._network if self._connections is None else self._connections
        remaining = flows.remaining([flow for _, flow in begun])
        for (transfer, _), left in zip(begun, remaining, strict=True):
            yield transfer, transfer.size - left / self._framing.data
        for transfer, _ in heads:
            if transfer.began == self._event_queue.now:
                yield transfer, 0.0

    def queues(self) -> list[QueuesRow]:
        """What has waited for each link since this was last asked: flows have no queues."""
        return []

    @property
    def is_stuck(self) -> bool:
        """Whether no message under way will ever be there: each waits for a link that is gone for good."""
        if self._network.is_moving:
            return False
        waiting = (self._routing.route(sender, receiver).links for sender, receiver, _ in self._heads)
        return all(any(map(self._changes.is_gone, links)) for links in waiting)

    def bytes_per_second(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        """What messages of each (sender, receiver) could have now: alone, and if all send at once."""
        routes = [self._routing.route(*pair).links for pair in pairs]
        ways_back = [self._routing.route(receiver, sender).links for sender, receiver in pairs]
        links = self._network.bytes_per_second
        windows = [self._window(*pair) for pair in pairs]
        most = [window / round_trip if round_trip else math.inf for window, round_trip in windows]
        weights = None if self._tcp.sharing_size is None else [self._weight(*pair) for pair in pairs]
        shared = max_min_rates(routes, links, ways_back, self._framing.acknowledgements, most, weights)
        alone = (min(*(links[link] for link in route), bound) for route, bound in zip(routes, most, strict=True))
        data = self._framing.data * self._scale
        return [(one / data, other / data) for one, other in zip(alone, shared, strict=True)]

    def check_restored(self) -> None:
        """Raise ValueError unless its routes, which may come from anybody, are over the links of its network."""
        parts = isinstance(self._routing, Routing) and isinstance(self._network, FlowNetwork)
        if not parts or len(self._routing.capacities_bps) != len(self._network.bytes_per_second):
            raise ValueError("its routes are over the links of another network")

    def _start(self, queue: _Queue, message: Message) -> None:
        """Send the head of a queue."""
        sender, receiver, _ = queue
        links, latency, _ = self._routing.route(sender, receiver)
        ended = partial(self._end, queue, latency if self._tcp.latency_factor is None else 0.0)
        transfer = Transfer(receiver, message, self._event_queue.now, self._scale)
        flow: int | _Queue | None = None
        if not links:
            self._event_queue.after(0.0, ended)
        elif not self._has_windows:  # As `_begin`, but a route is looked up once: most messages of most runs come here.
            way_back = self._routing.route(receiver, sender).links if self._framing.acknowledgements else ()
            flow = self._network.start(links, transfer.size * self._framing.data, ended, way_back)
        else:
            flow = self._send_windows(queue, transfer.size * self._framing.data, ended)
        self._heads[queue] = transfer, flow

    def _begin(self, queue: _Queue, size: float, ended: Call, most: float = math.inf) -> int:
        """Begin a flow over a queue's route, of so many bytes there and at most so many per second; its number."""
        sender, receiver, _ = queue
        links = self._routing.route(sender, receiver).links
        way_back = self._routing.route(receiver, sender).links if self._framing.acknowledgements else ()
        return self._network.start(links, size, ended, way_back, most, self._weight(sender, receiver))

    def _send_windows(self, queue: _Queue, size: float, ended: Call) -> int | _Queue:
        """Send so many bytes as fast as a window lets them."""
        sender, receiver, _ = queue
        largest, round_trip = self._window(sender, receiver)
        if self._connections is None:
            return self._begin(queue, size, ended, largest / round_trip if round_trip else math.inf)
        begin = partial(self._begin, queue)
        self._connections.send(queue, size, begin, ended, round_trip=round_trip, largest=largest)
        return queue

    def _window(self, sender: int, receiver: int) -> tuple[float, float]:
        """How many bytes may be on links between two at most, and the seconds of the round trip in which they are."""
        way, back = self._routing.route(sender, receiver), self._routing.route(receiver, sender)
        return self._tcp.most_under_way(way.loss), way.latency + back.latency

    def _weight(self, sender: int, receiver: int) -> int:
        """What a flow between two, that begins now, has of full links against others."""
        links, latency, _ = self._routing.route(sender, receiver)
        return self._tcp.weight(latency, (self._network.bytes_per_second[link] for link in links))

    def _end(self, queue: _Queue, latency: float) -> None:
        """The last byte of a queue's head has been sent."""
        if queue not in self._heads:
            return  # It crosses no link, and was cut in the instant in which it began.
        transfer, _ = self._heads.pop(queue)
        waiting = self._waiting.get(queue)
        if waiting:
            self._start(queue, waiting.popleft())
            if not waiting:
                del self._waiting[queue]
        self._event_queue.after(latency, partial(self._delivered, transfer.receiver, transfer.message))
        self._timed(transfer, self._event_queue.now - transfer.began, self._event_queue.now)
        self._sent(transfer)
