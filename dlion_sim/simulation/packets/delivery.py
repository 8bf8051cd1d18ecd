"""Messages between participants over a network of packets, in the place of `simulation.transport.Transport`."""

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
from dlion_sim.scenario import Dlcp, Packets, Pfabric
from dlion_sim.simulation.carrier import Delivered, Sent, Timed
from dlion_sim.simulation.changes import CapacityChanged, Changes
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.packets.fabric import ports_of
from dlion_sim.simulation.packets.lossy import LossyMessages, loss
from dlion_sim.simulation.packets.network import PacketNetwork
from dlion_sim.simulation.packets.parts import Completion, Known
from dlion_sim.simulation.packets.queues import Queues
from dlion_sim.simulation.packets.ways import Ways
from dlion_sim.simulation.routing import Routing
from dlion_sim.streams import stream_seed

_Queue = tuple[int, int, Channel, bool]
"""Of which messages: sender, receiver, channel, and whether some of them may be missing. Each is a connection."""


def packet_delivery(setting: Setting) -> Callable[..., PacketDelivery]:
    """What makes the transport of a run whose network is of packets.

    Raises InputError for a bound on losses of a variable that the model does not have.
    """
    scenario = setting.scenario
    model, transport = scenario.network.model, scenario.transport
    assert isinstance(model, Packets)
    return partial(
        PacketDelivery,
        model=model,
        ways_of=partial(Ways, model=model, transport=transport),
        lossy=LossyMessages.of(setting, transport, model.priorities) if isinstance(transport, Dlcp) else None,
        by_size=isinstance(transport, Pfabric),
        scale=setting.scale,
        seed=scenario.seed,
        end=math.inf if scenario.duration is None else scenario.duration,
    )


class PacketDelivery:
    """Messages of a channel to the same peer follow one another over a connection; so do their packets.

    The network is ahead of the event queue, up to the next time at which anything happens to a message, but never
    beyond anything else that is planned: then it waits for what comes of that. Each byte of tensors crosses links as
    `scale` bytes; nothing is looked at after the run's `end`.
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
        model: Packets,
        ways_of: Callable[[Routing], Ways],
        lossy: LossyMessages | None = None,
        by_size: bool = False,
        scale: float = 1.0,
        seed: int = 0,
        end: float = math.inf,
    ) -> None:
        self._event_queue = event_queue
        self._routing = routing
        self._lossy = lossy
        self._scale = scale
        self._end = end
        self._ways = ways_of(routing)
        ports, switches = ports_of(routing, model)
        spray, stream = model.paths == "spray", stream_seed(seed, "packets")
        self._network = PacketNetwork(
            ports, switches=switches, spray=spray, by_size=by_size, fair=model.fair, seed=stream
        )
        self._queues = Queues(self._network, routing.names)
        self._connections: dict[_Queue, int] = {}
        self._transfers: dict[int, Transfer] = {}
        """All that are not known to be there, by the network's number of the message."""
        self._leaving: dict[_Queue, deque[int]] = {}
        """Those that have not left, the first of which is about to."""
        self._probed: dict[int, int] = {}
        """The messages that have a probe behind them, and its number."""
        self._probes: dict[int, int] = {}
        """The other way round."""
        self._left: dict[int, float] = {}
        """When others had."""
        self._cuts: dict[int, Cut] = {}
        """Of those of which some may be missing."""
        self._waiting: dict[_Queue, deque[Transfer]] = {}
        """Such messages begin only when the one before them is there. Its queue is here even if nothing waits."""
        self._known: dict[_Queue, float] = {}
        """When the last message was there, as far as its sender knows."""
        self._is_due = False
        self._sent = sent
        self._timed = timed
        self._delivered = delivered
        self._changes = Changes(event_queue, routing.capacities_bps, resize=self._resize, changed=changed)

    def send(self, receiver: int, message: Message) -> None:
        """Queue a message."""
        transfer = Transfer(receiver, message, self._event_queue.now, self._scale)
        if self._routing.share_machine(message.sender, receiver):
            self._event_queue.after(0.0, partial(self._pass, transfer))
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
            self._leaving.setdefault(queue, deque()).append(number)
            if is_first and queue[2] is Channel.DATA and transfer.size < PROBE_BYTES:
                self._probed[number] = probe = self._network.send(connection, PROBE_BYTES)
                self._probes[probe] = number

    def under_way(self) -> Iterator[tuple[Transfer, float]]:
        """Every message that has begun to leave and is not known to be there, and how many of its bytes have left."""
        behind = {number for leaving in self._leaving.values() for number in [*leaving][1:]}
        for number, transfer in self._transfers.items():
            if number not in behind:
                yield transfer, transfer.size - self._network.unsent(number)

    def queues(self) -> list[QueuesRow]:
        """What has waited for each link since this was last asked."""
        return self._queues.rows(self._event_queue.now)

    @property
    def is_stuck(self) -> bool:
        """Whether no message under way will ever be there: each waits for a link that is gone for good."""
        if self._network.is_moving:
            return False
        pairs = {(transfer.sender, transfer.receiver) for transfer in self._transfers.values()}
        return all(self._is_cut_off(*pair) or self._is_cut_off(*pair[::-1]) for pair in pairs)

    def bytes_per_second(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        """What messages of each (sender, receiver) could have now: alone, and if all send at once, at fair rates."""
        return [(one / self._scale, other / self._scale) for one, other in self._ways.rates(pairs)]

    def check_restored(self) -> None:
        """Raise ValueError unless its parts, which may come from anybody, are of the same links and messages."""
        parts = isinstance(self._routing, Routing) and isinstance(self._network, PacketNetwork)
        if not parts or not self._network.fits(len(self._routing.capacities_bps), [*self._transfers, *self._probes]):
            raise ValueError("its routes are over the links of another network")

    def _queue(self, transfer: Transfer) -> _Queue:
        message = transfer.message
        is_cut = self._lossy is not None and self._lossy.are(message)
        return message.sender, transfer.receiver, message.body.channel, is_cut

    def _connection(self, queue: _Queue) -> int:
        """The one of these messages."""
        if queue not in self._connections:
            self._connections[queue] = self._ways.connect(self._network, *queue)
        return self._connections[queue]

    def _send_cut(self, queue: _Queue, transfer: Transfer) -> None:
        """Begin a message of which some may be missing."""
        assert self._lossy is not None
        transfer.began = self._event_queue.now
        cut, bound = self._lossy.cut(transfer)
        header = len(transfer.message.header)
        number = self._network.send_cut(
            self._connections[queue], cut, bound, header=header, stops_early=self._lossy.stops_early
        )
        self._transfers[number], self._cuts[number] = transfer, cut

    def _is_cut_off(self, sender: int, receiver: int) -> bool:
        """Whether no packet will ever come through."""
        return all(any(map(self._changes.is_gone, way.links)) for way in self._ways.between(sender, receiver))

    def _pass(self, transfer: Transfer) -> None:
        """Hand over a message that crosses nothing."""
        self._event_queue.after(0.0, partial(self._delivered, transfer.receiver, transfer.message))
        self._timed(transfer, self._event_queue.now - transfer.began, self._event_queue.now)
        self._sent(transfer)

    def _resize(self, link: int, bytes_per_second: float) -> None:
        self._catch_up()
        self._ways.bytes_per_second[link] = bytes_per_second
        self._network.resize(link, bytes_per_second)

    def _catch_up(self) -> None:
        """Let the network come to the present, and go on from here once all of it has happened."""
        if self._network.now < self._event_queue.now:
            self._plan(self._network.run(self._event_queue.now))
        self._ask_to_go_on()

    def _ask_to_go_on(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._event_queue.late(self._go_on)

    def _go_on(self) -> None:
        """Let the network go on until something happens to a message, or anything else is planned."""
        self._is_due = False
        now, until = self._event_queue.now, min(self._event_queue.next_time, self._end)
        news, is_up_to_date = self._network.step(until)
        self._plan(news)
        if not news and not is_up_to_date:
            self._event_queue.after(max(0.0, self._network.now - now), self._ask_to_go_on, background=True)
        elif not news and not self._network.is_quiet and now < until:
            self._event_queue.after(until - now, self._ask_to_go_on, background=True)

    def _plan(self, news: Sequence[Completion]) -> None:
        for each in news:
            self._event_queue.after(
                max(0.0, each.time - self._event_queue.now), partial(self._tell, each.what, each.message)
            )

    def _tell(self, what: str, number: int) -> None:
        """Tell of a message. With a probe behind it, it has left and is known when that is."""
        self._ask_to_go_on()
        if number in (self._probes if what == "delivered" else self._probed):
            return
        number = self._probes.get(number, number)
        transfer = self._transfers[number]
        if what == "sent":
            self._has_left(number, transfer)
        elif what == "delivered":
            self._is_there(number, transfer)
        else:
            self._is_known(number, transfer)

    def _has_left(self, number: int, transfer: Transfer) -> None:
        self._left[number] = now = self._event_queue.now
        queue = self._queue(transfer)
        if leaving := self._leaving.get(queue):
            leaving.popleft()
            if leaving:
                self._transfers[leaving[0]].began = now
            else:
                del self._leaving[queue]
        self._sent(transfer)

    def _is_there(self, number: int, transfer: Transfer) -> None:
        message = transfer.message
        if number in self._cuts:
            assert self._lossy is not None
            message = self._lossy.assemble(transfer, self._network.pieces(number))
        transfer.loss = Loss(0, 0, 0, (), self._event_queue.now - transfer.began)
        if held := self._ways.held(transfer.sender, transfer.receiver):
            self._event_queue.after(held, partial(self._delivered, transfer.receiver, message))
        else:
            self._delivered(transfer.receiver, message)

    def _is_known(self, number: int, transfer: Transfer) -> None:
        """The sender knows that a message is there."""
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
        self._timed(transfer, seconds, self._left.pop(number))

    def _seconds(self, number: int, queue: _Queue, transfer: Transfer) -> float:
        """How long links took for a message, as live nodes measure it: with a probe behind it, its part of both."""
        size, probe = transfer.size, self._probed.pop(number, None)
        first = last = Known(self._event_queue.now, size)
        if number not in self._cuts:
            first, last = self._network.known(number)
        if probe is not None:
            at, known = self._network.known(probe)[1]
            last, size = Known(at, size + known), size + PROBE_BYTES
            del self._probes[probe]
            self._network.release(probe)
        return self._paced(queue, transfer.began, size, first, last) * transfer.size / size

    def _paced(self, queue: _Queue, began: float, size: int, first: Known, last: Known) -> float:
        """How long links took for `size` bytes of which so much was known at `first` and `last`.

        That is from one acknowledgement to another; where these are too near, from when they could leave, without the
        round trip after which acknowledgements come when there was a pause.
        """
        since = max(began, self._known.get(queue, 0.0))
        if last.size - first.size >= size / 2:
            seconds = (last.at - first.at) * size / (last.size - first.size)
        else:
            pause = max(0.0, began + self._ways.round_trip(*queue[:2]) - since)
            elapsed = last.at - since
            seconds = max(elapsed - pause, elapsed / 2) * size / last.size
        self._known[queue] = last.at + seconds * (1 - last.size / size)
        return seconds
