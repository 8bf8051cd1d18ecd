"""Messages between participants over a network of packets, in the place of `simulation.transport.Transport`."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from dlion_sim.assembly import Transfer
from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.scenario import Packets, Pfabric, Reliable, Scenario
from dlion_sim.simulation.agenda import Agenda
from dlion_sim.simulation.changes import CapacityChanged, Changes
from dlion_sim.simulation.packets import parts
from dlion_sim.simulation.packets.fabric import ports_of
from dlion_sim.simulation.packets.network import PacketNetwork
from dlion_sim.simulation.packets.parts import Completion, Endpoint
from dlion_sim.simulation.packets.state import HEADER, SEGMENT
from dlion_sim.simulation.routing import BITS_PER_BYTE, Route, Routing
from dlion_sim.simulation.sharing import max_min_rates
from dlion_sim.simulation.tcp import TCP
from dlion_sim.simulation.transport import Delivered, Sent, Timed
from dlion_sim.streams import stream_seed

_Queue = tuple[int, int, Channel]
"""Of which messages: sender, receiver, channel. Each is a connection."""


def packet_transport(scenario: Scenario, scale: float) -> Callable[..., PacketTransport]:
    """What makes the transport of a scenario whose network is of packets."""
    assert isinstance(scenario.network.model, Packets)
    return partial(
        PacketTransport,
        model=scenario.network.model,
        transport=scenario.transport,
        scale=scale,
        seed=scenario.seed,
        end=math.inf if scenario.duration is None else scenario.duration,
    )


class PacketTransport:
    """Messages of a channel to the same peer follow one another over a connection; so do their packets.

    The network is ahead of the agenda, up to the next time at which anything happens to a message, but never to or
    beyond anything else that is planned: then it waits for what comes of that. Each byte of tensors crosses links as
    `scale` bytes; nothing is looked at after the run's `end`.
    """

    def __init__(
        self,
        agenda: Agenda,
        routing: Routing,
        *,
        sent: Sent,
        timed: Timed,
        delivered: Delivered,
        changed: CapacityChanged,
        model: Packets,
        transport: Reliable | Pfabric,
        scale: float = 1.0,
        seed: int = 0,
        end: float = math.inf,
    ) -> None:
        self._agenda = agenda
        self._routing = routing
        self._scale = scale
        self._end = end
        self._sends_all_ways = model.paths == "spray"
        self._settings = transport
        self._bytes_per_second = [capacity_bps.value_at(0) / BITS_PER_BYTE for capacity_bps in routing.capacities_bps]
        ports, switches = ports_of(routing, model)
        self._network = PacketNetwork(
            ports,
            switches=switches,
            spray=self._sends_all_ways,
            by_size=isinstance(transport, Pfabric),
            seed=stream_seed(seed, "packets"),
        )
        self._connections: dict[_Queue, int] = {}
        self._transfers: dict[int, Transfer] = {}
        """All that is not acknowledged, by the network's number of the message."""
        self._waiting: dict[_Queue, deque[int]] = {}
        """Those that have not left, the first of which is leaving."""
        self._known: dict[_Queue, float] = {}
        """When the last message was acknowledged."""
        self._is_due = False
        self._sent = sent
        self._timed = timed
        self._delivered = delivered
        self._changes = Changes(agenda, routing.capacities_bps, resize=self._resize, changed=changed)

    def send(self, receiver: int, message: Message) -> None:
        """Queue a message."""
        queue = message.sender, receiver, message.body.channel
        transfer = Transfer(receiver, message, self._agenda.now, self._scale)
        if self._routing.share_machine(message.sender, receiver):
            self._agenda.after(0.0, partial(self._pass, transfer))
            return
        self._catch_up()
        number = self._network.send(self._connection(queue), transfer.size)
        self._transfers[number] = transfer
        self._waiting.setdefault(queue, deque()).append(number)

    def under_way(self) -> Iterator[tuple[Transfer, float]]:
        """Every message that has begun to leave and is not known to have arrived, and how many of its bytes left."""
        behind = {number for waiting in self._waiting.values() for number in [*waiting][1:]}
        for number, transfer in self._transfers.items():
            if number not in behind:
                yield transfer, transfer.size - self._network.unsent(number)

    @property
    def is_stuck(self) -> bool:
        """Whether no message under way will ever be there: each waits for a link that is gone for good."""
        if self._network.is_moving:
            return False
        pairs = {(transfer.sender, transfer.receiver) for transfer in self._transfers.values()}
        return all(self._is_cut_off(*pair) or self._is_cut_off(*pair[::-1]) for pair in pairs)

    def bytes_per_second(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        """What messages of each (sender, receiver) could have now: alone, and if all send at once, at fair rates."""
        routes = [self._routing.route(*pair).links for pair in pairs]
        ways_back = [self._routing.route(receiver, sender).links for sender, receiver in pairs]
        most = [self._most(*pair) for pair in pairs]
        shared = max_min_rates(routes, self._bytes_per_second, ways_back, TCP.acknowledgements, most)
        alone = (
            min(*(self._bytes_per_second[link] for link in links), bound)
            for links, bound in zip(routes, most, strict=True)
        )
        data = TCP.data * self._scale
        return [(one / data, other / data) for one, other in zip(alone, shared, strict=True)]

    def check_restored(self) -> None:
        """Raise ValueError unless its parts, which may come from anybody, are of the same links and messages."""
        if not isinstance(self._routing, Routing) or not isinstance(self._network, PacketNetwork):
            raise ValueError("its routes are over the links of another network")
        self._network.check(len(self._routing.capacities_bps), self._transfers, self._connections.values())

    def _connection(self, queue: _Queue) -> int:
        """The one of these messages."""
        if queue not in self._connections:
            sender, receiver, _ = queue
            ways, back = self._ways(sender, receiver), self._ways(receiver, sender)
            self._connections[queue] = self._network.connect(
                [way.links for way in ways],
                [way.links for way in back],
                latency=ways[0].latency,
                latency_back=back[0].latency,
                loss=ways[0].loss,
                loss_back=back[0].loss,
                endpoint=self._endpoint(sender, receiver),
            )
        return self._connections[queue]

    def _ways(self, sender: int, receiver: int) -> tuple[Route, ...]:
        """The routes that packets take."""
        return (
            self._routing.paths(sender, receiver) if self._sends_all_ways else (self._routing.route(sender, receiver),)
        )

    def _endpoint(self, sender: int, receiver: int) -> Endpoint:
        settings = self._settings
        if isinstance(settings, Reliable):
            return parts.Reliable(settings.initial_window, settings.receive_window, settings.least_timeout)
        round_trip, rate = self._round_trip(sender, receiver), self._narrowest(sender, receiver)
        frame = SEGMENT + HEADER
        round_trip += sum(frame / max(self._bytes_per_second[link], 1.0) for link in self._links(sender, receiver))
        return parts.Pfabric(max(1, math.ceil(rate * round_trip / frame)), settings.least_timeout or 3 * round_trip)

    def _links(self, sender: int, receiver: int) -> tuple[int, ...]:
        return self._routing.route(sender, receiver).links

    def _narrowest(self, sender: int, receiver: int) -> float:
        return min(self._bytes_per_second[link] for link in self._links(sender, receiver))

    def _round_trip(self, sender: int, receiver: int) -> float:
        """Seconds that nothing can be faster than."""
        return self._routing.route(sender, receiver).latency + self._routing.route(receiver, sender).latency

    def _most(self, sender: int, receiver: int) -> float:
        """Bytes per second on links that a receiver's window lets through."""
        round_trip = self._round_trip(sender, receiver)
        if not isinstance(self._settings, Reliable) or not round_trip:
            return math.inf
        return self._settings.receive_window * TCP.data / round_trip

    def _is_cut_off(self, sender: int, receiver: int) -> bool:
        """Whether no packet will ever come through."""
        return all(any(map(self._changes.is_gone, way.links)) for way in self._ways(sender, receiver))

    def _pass(self, transfer: Transfer) -> None:
        """Hand over a message that crosses nothing."""
        self._agenda.after(0.0, partial(self._delivered, transfer.receiver, transfer.message))
        self._timed(transfer, self._agenda.now - transfer.began)
        self._sent(transfer)

    def _resize(self, link: int, bytes_per_second: float) -> None:
        self._catch_up()
        self._bytes_per_second[link] = bytes_per_second
        self._network.resize(link, bytes_per_second)

    def _catch_up(self) -> None:
        """Let the network come to the present, and go on from here once all of it has happened."""
        if self._network.now < self._agenda.now:
            self._plan(self._network.run(self._agenda.now))
        self._ask_to_go_on()

    def _ask_to_go_on(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._agenda.late(self._go_on)

    def _go_on(self) -> None:
        """Let the network go on until something happens to a message, or anything else is planned."""
        self._is_due = False
        now, until = self._agenda.now, min(self._agenda.next_time, self._end)
        news, is_up_to_date = self._network.step(until)
        self._plan(news)
        if not news and not is_up_to_date:
            self._agenda.after(max(0.0, self._network.now - now), self._ask_to_go_on, background=True)
        elif not news and not self._network.is_quiet and now < until:
            self._agenda.after(until - now, self._ask_to_go_on, background=True)

    def _plan(self, news: Sequence[Completion]) -> None:
        for each in news:
            self._agenda.after(max(0.0, each.time - self._agenda.now), partial(self._tell, each.what, each.message))

    def _tell(self, what: str, number: int) -> None:
        """Tell of a message."""
        self._ask_to_go_on()
        transfer = self._transfers[number]
        queue = transfer.sender, transfer.receiver, transfer.message.body.channel
        if what == "sent":
            waiting = self._waiting[queue]
            waiting.popleft()
            if waiting:
                self._transfers[waiting[0]].began = self._agenda.now
            else:
                del self._waiting[queue]
            self._sent(transfer)
        elif what == "delivered":
            self._delivered(transfer.receiver, transfer.message)
        else:
            del self._transfers[number]
            self._timed(transfer, self._seconds(queue, transfer))

    def _seconds(self, queue: _Queue, transfer: Transfer) -> float:
        """How long links took for a message that is known to be there since now, as live nodes measure it: after a
        pause acknowledgements come a round trip later."""
        since = max(transfer.began, self._known.get(queue, 0.0))
        pause = max(0.0, transfer.began + self._round_trip(queue[0], queue[1]) - since)
        elapsed = self._known[queue] = self._agenda.now
        elapsed -= since
        return max(elapsed - pause, elapsed / 2)
