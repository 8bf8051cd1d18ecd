"""Delivery of messages over a network of packets, in place of `simulation.delivery.Transport`."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from dlion_sim.assembly import Setting, Transfer
from dlion_sim.assembly.transfer import PROBE_BYTES, Loss
from dlion_sim.bounded_loss.cutting import Cut
from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.results import QueuesRow
from dlion_sim.scenario import Dlcp, Packets, Pfabric, Transport
from dlion_sim.simulation.carrier import CapacityChanges, Listener
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.packets.lossy import LossyMessages, loss
from dlion_sim.simulation.packets.network import PacketNetwork
from dlion_sim.simulation.packets.opening import ports_of
from dlion_sim.simulation.packets.parts import Acknowledged, Completion
from dlion_sim.simulation.packets.queues import Queues
from dlion_sim.simulation.packets.routes import PacketRoutes
from dlion_sim.simulation.routing import Routing
from dlion_sim.streams import stream_seed

_Queue = tuple[int, int, Channel, bool]
"""Sender, receiver, channel, and whether a part of messages may be missing. Each has a connection."""


def packet_delivery(setting: Setting) -> Callable[..., PacketDelivery]:
    """The factory of the carrier of a run with a network of packets.

    Raises InputError for a bound on losses of a variable that the model does not have.
    """
    scenario = setting.scenario
    model, transport = scenario.network.model, scenario.transport
    assert isinstance(model, Packets)
    lossy = None
    if isinstance(transport, Dlcp):
        lossy = LossyMessages(transport, setting.layout, setting.workers, model.priorities)
    return partial(
        PacketDelivery,
        model=model,
        transport=transport,
        lossy=lossy,
        scale=setting.scale,
        seed=scenario.seed,
        end=math.inf if scenario.duration is None else scenario.duration,
    )


class PacketDelivery:
    """Messages of a channel to a peer, and their packets, follow one another over a connection.

    The network runs ahead of the event queue, up to the next event of a message, but never beyond the next scheduled
    call. Each byte of tensors is charged as `scale` bytes on links, or as `Body.growth` says. It stops at the run's
    `end`.
    """

    def __init__(
        self,
        event_queue: EventQueue,
        routing: Routing,
        listener: Listener,
        *,
        model: Packets,
        transport: Transport,
        lossy: LossyMessages | None = None,
        scale: float = 1.0,
        seed: int = 0,
        end: float = math.inf,
    ) -> None:
        self._event_queue = event_queue
        self._routing = routing
        self._lossy = lossy
        self._scale = scale
        self._end = end
        self._routes = PacketRoutes(routing, model, transport)
        ports, switches = ports_of(routing, model)
        stream = stream_seed(seed, "packets")
        self._network = PacketNetwork(
            ports,
            switches=switches,
            spray=model.paths == "spray",
            by_size=isinstance(transport, Pfabric),
            fair=model.fair,
            seed=stream,
        )
        self._queues = Queues(self._network, routing.names)
        self._connections: dict[_Queue, int] = {}
        self._transfers: dict[int, Transfer] = {}
        """Messages that are not acknowledged, by their number in the network."""
        self._sending: dict[_Queue, deque[int]] = {}
        """Messages that are not sent completely; the first one is being sent."""
        self._probed: dict[int, int] = {}
        """By message, the number of the probe that follows it."""
        self._probes: dict[int, int] = {}
        """By probe, the number of the message before it."""
        self._sent_at: dict[int, float] = {}
        """When messages that are not acknowledged were sent completely."""
        self._cuts: dict[int, Cut] = {}
        """Of messages of which a part may be missing."""
        self._waiting: dict[_Queue, deque[Transfer]] = {}
        """Such messages that wait for the acknowledgement of the one before. Empty while one is under way alone."""
        self._acknowledged_at: dict[_Queue, float] = {}
        """When the last message was acknowledged, by interpolation."""
        self._is_due = False
        self._listener = listener
        self._changes = CapacityChanges(
            event_queue, routing.capacities_bps, resize=self._resize, changed=listener.changed
        )

    def send(self, receiver: int, message: Message) -> None:
        transfer = Transfer(receiver, message, self._event_queue.now, self._scale)
        if self._routing.share_machine(message.sender, receiver):
            self._event_queue.after(0.0, partial(self._deliver_locally, transfer))
            return
        queue = self._queue(transfer)
        if queue in self._waiting:
            self._waiting[queue].append(transfer)
            return
        self._catch_up()
        is_first = queue not in self._connections
        connection = self._connection(queue)
        if queue[-1]:
            self._waiting[queue] = deque()
            self._send_cut(queue, transfer)
        else:
            number = self._network.send(connection, transfer.size)
            self._transfers[number] = transfer
            self._sending.setdefault(queue, deque()).append(number)
            if is_first and transfer.probe:
                self._probed[number] = probe = self._network.send(connection, transfer.probe)
                self._probes[probe] = number

    def under_way(self) -> Iterator[tuple[Transfer, float]]:
        """See `Carrier.under_way`."""
        behind = {number for leaving in self._sending.values() for number in [*leaving][1:]}
        for number, transfer in self._transfers.items():
            if number not in behind:
                yield transfer, transfer.size - self._network.unsent(number)

    def queues(self) -> list[QueuesRow]:
        return self._queues.rows(self._event_queue.now)

    @property
    def is_stuck(self) -> bool:
        """Whether no message under way will ever be delivered: each waits for a link that is down for good."""
        if self._network.is_moving:
            return False
        pairs = {(transfer.sender, transfer.receiver) for transfer in self._transfers.values()}
        return all(self._is_unreachable(*pair) or self._is_unreachable(*pair[::-1]) for pair in pairs)

    def bytes_per_second(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        """The present fair rate for each (sender, receiver): alone, and if all send at once."""
        return [(one / self._scale, other / self._scale) for one, other in self._routes.rates(pairs)]

    def check_restored(self) -> None:
        """Raise ValueError unless the parts of a checkpoint are of the same links and messages."""
        parts = isinstance(self._routing, Routing) and isinstance(self._network, PacketNetwork)
        if not parts or not self._network.fits(len(self._routing.capacities_bps), [*self._transfers, *self._probes]):
            raise ValueError("its routes are over the links of another network")

    def _queue(self, transfer: Transfer) -> _Queue:
        message = transfer.message
        is_cut = self._lossy is not None and self._lossy.are(message)
        return message.sender, transfer.receiver, message.body.channel, is_cut

    def _connection(self, queue: _Queue) -> int:
        if queue not in self._connections:
            self._connections[queue] = self._routes.connect(self._network, *queue)
        return self._connections[queue]

    def _send_cut(self, queue: _Queue, transfer: Transfer) -> None:
        """Begin to send a message of which a part may be missing."""
        assert self._lossy is not None
        transfer.began = self._event_queue.now
        cut, bound = self._lossy.cut(transfer)
        header = len(transfer.message.header)
        number = self._network.send_cut(
            self._connections[queue], cut, bound, header=header, stops_early=self._lossy.stops_early
        )
        self._transfers[number], self._cuts[number] = transfer, cut

    def _is_unreachable(self, sender: int, receiver: int) -> bool:
        return all(
            any(map(self._changes.is_down_for_good, way.links)) for way in self._routes.between(sender, receiver)
        )

    def _deliver_locally(self, transfer: Transfer) -> None:
        self._event_queue.after(0.0, partial(self._listener.delivered, transfer.receiver, transfer.message))
        self._listener.timed(transfer, self._event_queue.now - transfer.began, self._event_queue.now)
        self._listener.sent(transfer)

    def _resize(self, link: int, bytes_per_second: float) -> None:
        self._catch_up()
        self._routes.bytes_per_second[link] = bytes_per_second
        self._network.resize(link, bytes_per_second)

    def _catch_up(self) -> None:
        """Advance the network to the present, and further at the end of this instant."""
        if self._network.now < self._event_queue.now:
            self._schedule(self._network.run(self._event_queue.now))
        self._request_advance()

    def _request_advance(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._event_queue.late(self._advance)

    def _advance(self) -> None:
        """Advance the network to the next event of a message, or to the next scheduled call."""
        self._is_due = False
        now, until = self._event_queue.now, min(self._event_queue.next_time, self._end)
        completions, is_up_to_date = self._network.step(until)
        self._schedule(completions)
        if not completions and not is_up_to_date:
            self._event_queue.after(max(0.0, self._network.now - now), self._request_advance, background=True)
        elif not completions and not self._network.is_quiet and now < until:
            self._event_queue.after(until - now, self._request_advance, background=True)

    def _schedule(self, completions: Sequence[Completion]) -> None:
        for each in completions:
            self._event_queue.after(
                max(0.0, each.time - self._event_queue.now), partial(self._report, each.what, each.message)
            )

    def _report(self, what: str, number: int) -> None:
        """Report an event of a message. If a probe follows it, sending and acknowledgement are those of the probe."""
        self._request_advance()
        if number in (self._probes if what == "delivered" else self._probed):
            return
        number = self._probes.get(number, number)
        transfer = self._transfers[number]
        if what == "sent":
            self._on_sent(number, transfer)
        elif what == "delivered":
            self._on_delivered(number, transfer)
        else:
            self._on_acknowledged(number, transfer)

    def _on_sent(self, number: int, transfer: Transfer) -> None:
        self._sent_at[number] = now = self._event_queue.now
        queue = self._queue(transfer)
        if sending := self._sending.get(queue):
            sending.popleft()
            if sending:
                self._transfers[sending[0]].began = now
            else:
                del self._sending[queue]
        self._listener.sent(transfer)

    def _on_delivered(self, number: int, transfer: Transfer) -> None:
        message = transfer.message
        if number in self._cuts:
            assert self._lossy is not None
            message = self._lossy.assemble(transfer, self._network.pieces(number))
        transfer.loss = Loss(0, 0, 0, (), self._event_queue.now - transfer.began)
        if extra_latency := self._routes.extra_latency(transfer.sender, transfer.receiver):
            self._event_queue.after(extra_latency, partial(self._listener.delivered, transfer.receiver, message))
        else:
            self._listener.delivered(transfer.receiver, message)

    def _on_acknowledged(self, number: int, transfer: Transfer) -> None:
        queue = self._queue(transfer)
        assert transfer.loss is not None
        assert transfer.loss.seconds is not None
        resent = self._network.resent(number)
        seconds = self._seconds(number, queue, transfer)
        if number in self._cuts:
            cut, pieces = self._cuts.pop(number), self._network.pieces(number)
            transfer.loss = loss(cut, pieces, resent=resent, began=transfer.began, seconds=transfer.loss.seconds)
            if waiting := self._waiting[queue]:
                self._send_cut(queue, waiting.popleft())
            else:
                del self._waiting[queue]
        else:
            transfer.loss = transfer.loss._replace(resent=resent)
        del self._transfers[number]
        self._network.release(number)
        self._listener.timed(transfer, seconds, self._sent_at.pop(number))

    def _seconds(self, number: int, queue: _Queue, transfer: Transfer) -> float:
        """The time of a message on links as live nodes measure it; if a probe follows it, its part of both."""
        size, probe = transfer.size, self._probed.pop(number, None)
        first = last = Acknowledged(self._event_queue.now, size)
        if number not in self._cuts:
            first, last = self._network.acknowledged(number)
        if probe is not None:
            at, acknowledged = self._network.acknowledged(probe)[1]
            last, size = Acknowledged(at, size + acknowledged), size + PROBE_BYTES
            del self._probes[probe]
            self._network.release(probe)
        return self._paced(queue, transfer.began, size, first, last) * transfer.size / size

    def _paced(self, queue: _Queue, began: float, size: int, first: Acknowledged, last: Acknowledged) -> float:
        """The time of `size` bytes on links, by the bytes acknowledged at `first` and `last`.

        It is extrapolated from the time between both; if they are too close, from the begin of transmission, less a
        round trip after a pause.
        """
        since = max(began, self._acknowledged_at.get(queue, 0.0))
        if last.size - first.size >= size / 2:
            seconds = (last.at - first.at) * size / (last.size - first.size)
        else:
            pause = max(0.0, began + self._routes.round_trip(*queue[:2]) - since)
            elapsed = last.at - since
            seconds = max(elapsed - pause, elapsed / 2) * size / last.size
        self._acknowledged_at[queue] = last.at + seconds * (1 - last.size / size)
        return seconds
