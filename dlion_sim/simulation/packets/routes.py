"""Routes and endpoints of connections between participants, by a scenario's network and transport."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlion_sim.protocol.messages import Channel
from dlion_sim.scenario import Dlcp, Packets, Pfabric, Reliable, Transport
from dlion_sim.scenario.network import SEGMENT
from dlion_sim.simulation.packets import parts
from dlion_sim.simulation.packets.network import PacketNetwork
from dlion_sim.simulation.packets.state import HEADER
from dlion_sim.simulation.routing import BITS_PER_BYTE, Route, Routing
from dlion_sim.simulation.tcp import TCP, message_rates


class PacketRoutes:
    """The routes of packets between participants, and the connections over them."""

    def __init__(self, routing: Routing, model: Packets, transport: Transport) -> None:
        self._routing = routing
        self._model = model
        self._transport = transport
        self._reliable = transport if isinstance(transport, Reliable) else Reliable()
        """The transport of messages that need to be complete."""
        self.bytes_per_second = [capacity_bps.value_at(0) / BITS_PER_BYTE for capacity_bps in routing.capacities_bps]
        """The present capacity of each link."""

    def connect(self, network: PacketNetwork, sender: int, receiver: int, channel: Channel, is_cut: bool) -> int:
        """Open a connection for messages of a channel, of which a part may be missing if `is_cut`; its number."""
        outward, back = self.between(sender, receiver), self.between(receiver, sender)
        # Weights, which no iteration waits for, must not have priority over gradients.
        is_last = isinstance(self._transport, Dlcp) and channel is Channel.WEIGHTS
        return network.connect(
            [way.links for way in outward],
            [way.links for way in back],
            latency=self._latency(sender, receiver),
            latency_back=self._latency(receiver, sender),
            loss=outward[0].loss,
            loss_back=back[0].loss,
            priority=self._model.priorities - 1 if is_last else 0,
            endpoint=self._endpoint(sender, receiver, is_cut),
        )

    def between(self, sender: int, receiver: int) -> tuple[Route, ...]:
        """The routes that packets take in turn."""
        if self._model.paths == "spray":
            return self._routing.paths(sender, receiver)
        return (self._routing.route(sender, receiver),)

    def round_trip(self, sender: int, receiver: int) -> float:
        """The round trip without queues (s)."""
        return self._latency(sender, receiver) + self._latency(receiver, sender)

    def extra_latency(self, sender: int, receiver: int) -> float:
        """Latency that is added after a message has arrived, as links have none (s)."""
        return self._routing.route(sender, receiver).latency - self._latency(sender, receiver)

    def rates(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        """The present rate of messages for each (sender, receiver): alone, and if all send at once."""
        most = [self._window_rate(*pair) for pair in pairs]
        return message_rates(self._routing, self.bytes_per_second, pairs, TCP, most)

    def _latency(self, sender: int, receiver: int) -> float:
        return self._routing.route(sender, receiver).latency if self._model.delays == "links" else 0.0

    def _window_rate(self, sender: int, receiver: int) -> float:
        """The rate on links that a receiver's window allows (bytes per second)."""
        round_trip = self.round_trip(sender, receiver)
        if not isinstance(self._transport, Reliable) or not round_trip:
            return math.inf
        return self._transport.receive_window * TCP.data / round_trip

    def _endpoint(self, sender: int, receiver: int, is_cut: bool) -> parts.Endpoint:
        transport = self._transport
        if isinstance(transport, Dlcp) and is_cut:
            window = transport.initial_window if transport.congestion_control == "dctcp" else math.inf
            return parts.Bounded(window, transport.least_timeout)
        if isinstance(transport, Pfabric):
            return self._pfabric(sender, receiver, transport)
        reliable = self._reliable
        is_linux = reliable.recovery == "linux"
        return parts.Reliable(reliable.initial_window, reliable.receive_window, reliable.least_timeout, is_linux)

    def _pfabric(self, sender: int, receiver: int, transport: Pfabric) -> parts.Pfabric:
        """With a window of the bandwidth-delay product, and by default a timeout of three round trips."""
        links, frame = self._routing.route(sender, receiver).links, SEGMENT + HEADER
        rates = [max(self.bytes_per_second[link], 1.0) for link in links]
        round_trip = self.round_trip(sender, receiver) + sum(frame / rate for rate in rates)
        return parts.Pfabric(math.ceil(min(rates) * round_trip / frame), transport.least_timeout or 3 * round_trip)
