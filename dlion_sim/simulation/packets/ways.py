"""Which connections there are, and what each is like: its ways, and what is at its ends."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlion_sim.protocol.messages import Channel
from dlion_sim.scenario import Dlcp, Packets, Pfabric, Reliable, Transport
from dlion_sim.simulation.packets import parts
from dlion_sim.simulation.packets.network import PacketNetwork
from dlion_sim.simulation.packets.state import HEADER, SEGMENT
from dlion_sim.simulation.routing import BITS_PER_BYTE, Route, Routing
from dlion_sim.simulation.sharing import max_min_rates
from dlion_sim.simulation.tcp import TCP


class Ways:
    """Those of packets between participants, as a scenario's network and transport have them."""

    def __init__(self, routing: Routing, model: Packets, transport: Transport) -> None:
        self._routing = routing
        self._model = model
        self._transport = transport
        self._reliable = transport if isinstance(transport, Reliable) else Reliable()
        """What control messages have where others need not be whole, too."""
        self.bytes_per_second = [capacity_bps.value_at(0) / BITS_PER_BYTE for capacity_bps in routing.capacities_bps]
        """That each link carries now."""

    def connect(self, network: PacketNetwork, sender: int, receiver: int, channel: Channel, is_cut: bool) -> int:
        """A new connection for messages of a channel, of which some may be missing or not; its number."""
        ways, back = self.between(sender, receiver), self.between(receiver, sender)
        # Weights, which nothing waits for, must not go ahead of gradients that have classes.
        is_last = isinstance(self._transport, Dlcp) and channel is Channel.WEIGHTS
        return network.connect(
            [way.links for way in ways],
            [way.links for way in back],
            latency=self._latency(sender, receiver),
            latency_back=self._latency(receiver, sender),
            loss=ways[0].loss,
            loss_back=back[0].loss,
            priority=self._model.priorities - 1 if is_last else 0,
            endpoint=self._endpoint(sender, receiver, is_cut),
        )

    def between(self, sender: int, receiver: int) -> tuple[Route, ...]:
        """The routes that packets take, in turn."""
        if self._model.paths == "spray":
            return self._routing.paths(sender, receiver)
        return (self._routing.route(sender, receiver),)

    def round_trip(self, sender: int, receiver: int) -> float:
        """Seconds that nothing can be faster than."""
        return self._latency(sender, receiver) + self._latency(receiver, sender)

    def held(self, sender: int, receiver: int) -> float:
        """Seconds for which a message that has come is held back, as links have not delayed it."""
        return self._routing.route(sender, receiver).latency - self._latency(sender, receiver)

    def rates(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        """Bytes of messages per second that each (sender, receiver) could have now: alone, and if all send at once."""
        routes = [self._routing.route(*pair).links for pair in pairs]
        ways_back = [self._routing.route(receiver, sender).links for sender, receiver in pairs]
        most = [self._most(*pair) for pair in pairs]
        shared = max_min_rates(routes, self.bytes_per_second, ways_back, TCP.acknowledgements, most)
        alone = (
            min(*(self.bytes_per_second[link] for link in links), bound)
            for links, bound in zip(routes, most, strict=True)
        )
        return [(one / TCP.data, other / TCP.data) for one, other in zip(alone, shared, strict=True)]

    def _latency(self, sender: int, receiver: int) -> float:
        """Seconds that pass on links."""
        return self._routing.route(sender, receiver).latency if self._model.delays == "links" else 0.0

    def _most(self, sender: int, receiver: int) -> float:
        """Bytes per second on links that a receiver's window lets through."""
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
        """With a window of bandwidth times delay, and by default a timeout of three round trips."""
        links, frame = self._routing.route(sender, receiver).links, SEGMENT + HEADER
        rates = [max(self.bytes_per_second[link], 1.0) for link in links]
        round_trip = self.round_trip(sender, receiver) + sum(frame / rate for rate in rates)
        return parts.Pfabric(math.ceil(min(rates) * round_trip / frame), transport.least_timeout or 3 * round_trip)
