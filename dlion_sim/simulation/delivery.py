"""Reliable, ordered delivery between workers, as over TCP: one queue per channel of each ordered pair."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from dlion_sim.assembly import Transfer
from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.results import QueuesRow
from dlion_sim.simulation.carrier import CapacityChanges, Dropped, Listener
from dlion_sim.simulation.event_queue import Call, EventQueue
from dlion_sim.simulation.flows import FlowNetwork
from dlion_sim.simulation.queued import QueuedConnections
from dlion_sim.simulation.routing import BITS_PER_BYTE, Routing
from dlion_sim.simulation.tcp import IDEAL, Connections, TcpModel, message_rates

_Queue = tuple[int, int, Channel]
"""Sender, receiver, channel."""
_Head = tuple[Transfer, int | _Queue | None]
"""The message being sent, and the number of its flow or its connection; None if it crosses no link."""


class Transport:
    """Delivers messages in order within each queue.

    The queue's head is a flow over the pair's route; or several flows one after another, with slow start. When its last
    byte has been sent, the next one starts, and it is delivered after the route's latency; or at once, if latencies
    pass before a message enters its queue. With queues in the network, the next one starts when the last byte has left
    the sender. Each byte of tensors is charged as `scale` bytes on links, or as `Body.growth` says; rates that
    `bytes_per_second` returns are divided by `scale`.
    """

    def __init__(
        self,
        event_queue: EventQueue,
        routing: Routing,
        listener: Listener,
        *,
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
        """By queue, with slow start."""
        self._queued: QueuedConnections | None = None
        """By queue, with queues in the network."""
        if tcp.queue:
            self._queued = QueuedConnections(
                event_queue,
                self._network,
                tcp.queue,
                tcp.burst,
                routes=self._routes,
                left=self._leave,
                arrived=self._arrive,
                timed=listener.timed,
            )
        self._has_windows = slow_start is not None or tcp.window < math.inf
        self._heads: dict[_Queue, _Head] = {}
        self._waiting: dict[_Queue, deque[Message]] = {}
        """Messages behind the head, if any."""
        self._delayed: dict[_Queue, deque[Message]] = {}
        """Messages whose latency passes before they enter the queue."""
        self._listener = listener
        self._changes = CapacityChanges(
            event_queue, routing.capacities_bps, resize=self._network.resize, changed=listener.changed
        )

    def send(self, receiver: int, message: Message) -> None:
        queue = message.sender, receiver, message.body.channel
        factor = self._tcp.latency_factor
        if factor is None:
            self._queue(queue, message)
        else:
            latency = self._routing.route(message.sender, receiver).latency
            delayed = self._delayed.setdefault(queue, deque())
            delayed.append(message)
            self._event_queue.after(factor * latency, partial(self._enqueue_delayed, queue, delayed))

    def cut(self, one: int, other: int) -> Dropped:
        """Drop and return all messages between two participants whose last byte links have not carried."""
        queues = [(*ends, channel) for ends in ((one, other), (other, one)) for channel in Channel]
        heads = [self._heads[queue] for queue in queues if queue in self._heads]
        over_links = [head for head in heads if head[1] is not None]
        begun = list(self._carried(over_links) if self._queued is None else self._undelivered(queues))
        for _, flow in heads:
            if isinstance(flow, int):
                self._network.cut(flow)
        others = len(heads) - len(over_links)
        for queue in queues:
            self._heads.pop(queue, None)
            if self._connections is not None:
                self._connections.cut(queue)
            if self._queued is not None:
                self._queued.cut(queue)
            others += len(self._waiting.pop(queue, ()))
            if delayed := self._delayed.pop(queue, None):
                others += len(delayed)
                delayed.clear()
        return Dropped(begun, others)

    def _enqueue_delayed(self, queue: _Queue, delayed: deque[Message]) -> None:
        """The first delayed message enters its queue, unless it was dropped."""
        if delayed:
            self._queue(queue, delayed.popleft())

    def _queue(self, queue: _Queue, message: Message) -> None:
        if queue in self._heads:
            self._waiting.setdefault(queue, deque()).append(message)
        else:
            self._start(queue, message)

    def under_way(self) -> Iterator[tuple[Transfer, float]]:
        """The messages being sent over links, with the bytes that these have carried."""
        if self._queued is not None:
            return self._undelivered()
        return self._carried([head for head in self._heads.values() if head[1] is not None])

    def _undelivered(self, queues: Sequence[_Queue] | None = None) -> Iterator[tuple[Transfer, float]]:
        """With queues in the network: the messages of all or of these queues that have not arrived."""
        assert self._queued is not None
        for transfer, remaining in self._queued.under_way(queues):
            yield transfer, transfer.size - remaining / self._framing.data

    def _carried(self, heads: Sequence[_Head]) -> Iterator[tuple[Transfer, float]]:
        # Flows that start in this instant get their rates at its end.
        begun = [(transfer, flow) for transfer, flow in heads if transfer.began < self._event_queue.now]
        flows: Any = self._network if self._connections is None else self._connections
        remaining = flows.remaining([flow for _, flow in begun])
        for (transfer, _), left in zip(begun, remaining, strict=True):
            yield transfer, transfer.size - left / self._framing.data
        for transfer, _ in heads:
            if transfer.began == self._event_queue.now:
                yield transfer, 0.0

    def queues(self) -> list[QueuesRow]:
        return []

    @property
    def is_stuck(self) -> bool:
        """Whether no message under way will ever be delivered: each waits for a link that is down for good."""
        if self._network.is_moving:
            return False
        busy = chain(self._heads, self._queued.busy() if self._queued is not None else ())
        waiting = (self._routing.route(sender, receiver).links for sender, receiver, _ in busy)
        return all(any(map(self._changes.is_down_for_good, links)) for links in waiting)

    def bytes_per_second(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        """The present rate for each (sender, receiver): alone, and if all send at once."""
        windows = [self._window(*pair) for pair in pairs]
        most = [window / round_trip if round_trip else math.inf for window, round_trip in windows]
        weights = None if self._tcp.sharing_size is None else [self._weight(*pair) for pair in pairs]
        charged = replace(self._framing, data=self._framing.data * self._scale)
        return message_rates(self._routing, self._network.bytes_per_second, pairs, charged, most, weights)

    def check_restored(self) -> None:
        """Raise ValueError unless the routes of a checkpoint are over the links of its network."""
        parts = isinstance(self._routing, Routing) and isinstance(self._network, FlowNetwork)
        if not parts or len(self._routing.capacities_bps) != len(self._network.bytes_per_second):
            raise ValueError("its routes are over the links of another network")

    def _start(self, queue: _Queue, message: Message) -> None:
        sender, receiver, _ = queue
        links, latency, _ = self._routing.route(sender, receiver)
        ended = partial(self._end, queue, latency if self._tcp.latency_factor is None else 0.0)
        transfer = Transfer(receiver, message, self._event_queue.now, self._scale)
        flow: int | _Queue | None = None
        if not links:
            self._event_queue.after(0.0, ended)
        elif self._queued is not None:
            on_links = self._framing.data
            self._queued.send(queue, transfer, transfer.size * on_links, transfer.probe * on_links)
            flow = queue
        elif not self._has_windows:  # As `_begin`, but a route is looked up once: the most frequent case.
            return_route = self._routing.route(receiver, sender).links if self._framing.acknowledgements else ()
            flow = self._network.start(links, transfer.size * self._framing.data, ended, return_route)
        else:
            flow = self._send_windows(queue, transfer.size * self._framing.data, ended)
        self._heads[queue] = transfer, flow

    def _begin(self, queue: _Queue, size: float, ended: Call, most: float = math.inf) -> int:
        """Begin a flow over a queue's route, of `size` bytes on links and at most `most` per second; its number."""
        sender, receiver, _ = queue
        links, return_route = self._routes(queue)
        return self._network.start(links, size, ended, return_route, most, self._weight(sender, receiver))

    def _routes(self, queue: _Queue) -> tuple[Sequence[int], Sequence[int]]:
        """The links there, and those of acknowledgements."""
        sender, receiver, _ = queue
        links = self._routing.route(sender, receiver).links
        return links, self._routing.route(receiver, sender).links if self._framing.acknowledgements else ()

    def _send_windows(self, queue: _Queue, size: float, ended: Call) -> int | _Queue:
        sender, receiver, _ = queue
        largest, round_trip = self._window(sender, receiver)
        if self._connections is None:
            return self._begin(queue, size, ended, largest / round_trip if round_trip else math.inf)
        begin = partial(self._begin, queue)
        self._connections.send(queue, size, begin, ended, round_trip=round_trip, largest=largest)
        return queue

    def _window(self, sender: int, receiver: int) -> tuple[float, float]:
        """The largest window between two (bytes on links), and the round trip (s)."""
        way, back = self._routing.route(sender, receiver), self._routing.route(receiver, sender)
        return self._tcp.most_under_way(way.loss), way.latency + back.latency

    def _weight(self, sender: int, receiver: int) -> int:
        """The weight of a flow between two that begins now."""
        links, latency, _ = self._routing.route(sender, receiver)
        return self._tcp.weight(latency, (self._network.bytes_per_second[link] for link in links))

    def _end(self, queue: _Queue, latency: float) -> None:
        if queue not in self._heads:
            return  # It crosses no link, and was dropped in the instant in which it began.
        transfer = self._take_head(queue)
        self._event_queue.after(latency, partial(self._listener.delivered, transfer.receiver, transfer.message))
        self._listener.timed(transfer, self._event_queue.now - transfer.began, self._event_queue.now)
        self._listener.sent(transfer)

    def _take_head(self, queue: _Queue) -> Transfer:
        """The head, which has been sent; the next message starts."""
        transfer, _ = self._heads.pop(queue)
        waiting = self._waiting.get(queue)
        if waiting:
            self._start(queue, waiting.popleft())
            if not waiting:
                del self._waiting[queue]
        return transfer

    def _leave(self, queue: _Queue) -> None:
        """The head's last byte has left its sender, and may wait in the network."""
        self._listener.sent(self._take_head(queue))

    def _arrive(self, transfer: Transfer) -> None:
        """Links have carried the last byte of a message."""
        latency = self._routing.route(transfer.sender, transfer.receiver).latency
        self._event_queue.after(latency, partial(self._listener.delivered, transfer.receiver, transfer.message))
