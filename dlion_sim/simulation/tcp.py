"""The model of TCP for flows: its overhead in bytes, its windows, and connections with slow start.

A round is a round trip. In each, a connection sends a window at its fair rate, and waits for the end of the round,
when its first bytes are acknowledged. If it sent more than half of the window, this grows by as much (slow start;
Linux's `tcp_is_cwnd_limited`). A window that is not sent within a round fills the links: from then on the rest is sent
at its fair rate, paced by acknowledgements, and so are messages that follow at once. The rate is at most the largest
window per round trip.

Not modelled: reactions to losses. So there is no congestion avoidance, and windows shrink only while nothing is sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from dlion_sim.scenario import Flows, Lv08, Network, NoTcp, Windows
from dlion_sim.scenario.network import FULL_FRAME, SEGMENT
from dlion_sim.simulation.event_queue import Call, EventQueue
from dlion_sim.simulation.flows import FlowNetwork
from dlion_sim.simulation.routing import Routing
from dlion_sim.simulation.sharing import max_min_rates

_ACKNOWLEDGEMENT = 66
"""Bytes of an acknowledgement's frame."""
_LEAST_TIMEOUT = 0.2
"""Seconds that Linux adds to a round trip before it considers a segment lost."""
_FILLED = 0.75
"""The mean part of a queue that Reno's window fills: a loss halves it, then it grows evenly until the queue is full."""
_LEAST_PART = 0.5
"""Bytes: less than that is a rounding error, and gets no round."""
_WEIGHT, _LEAST_SECONDS = 2**16, 1e-6
"""The weight of a flow that takes a second, and the least that any takes: sums of weights are exact."""


Begin = Callable[[float, Call, float], int]
"""Begins a flow, given its bytes, a call for its end, and a bound of its rate (bytes per second); its number."""


@dataclass(frozen=True)
class Framing:
    """A protocol's overhead."""

    data: float
    """Bytes on a link for each byte of a message."""
    acknowledgements: float
    """Bytes in the reverse direction for each byte on a link."""

    @classmethod
    def of_segments(cls, acknowledgements: float) -> Framing:
        """TCP's, with full segments and so many acknowledgements for each."""
        return cls(FULL_FRAME / SEGMENT, _ACKNOWLEDGEMENT / FULL_FRAME * acknowledgements)


TCP = Framing.of_segments(Flows().acknowledgements)


@dataclass(frozen=True)
class SlowStart:
    """The growth of a connection's window."""

    initial: float
    """The initial window: bytes on links per round trip."""
    idle_restart: bool
    """Whether an idle window shrinks."""


@dataclass(frozen=True)
class TcpModel:
    """What limits messages apart from shared links."""

    framing: Framing = TCP
    latency_factor: float | None = None
    """With it, so many times the route's latency passes before a message's first byte, and none after its last one.
    Otherwise the latency passes after its last byte."""
    window: float = math.inf
    """The largest window: bytes on links per round trip."""
    sharing_size: float | None = None
    """A flow's share of full links is inverse to the time of so many bytes; without it all shares are equal."""
    slow_start: SlowStart | None = None
    """Without it, a window is of its largest size from the first byte on."""
    queue: float = 0.0
    """So many bytes on links of each connection wait before the tightest link of its route."""
    burst: float = 0.0
    """Bytes in the token bucket of a link, with queues; 0 if it has none."""

    @classmethod
    def of(cls, network: Network) -> TcpModel:
        framing = Framing.of_segments(network.model.acknowledgements) if isinstance(network.model, Flows) else TCP
        match tcp := network.tcp:
            case NoTcp() if isinstance(network.model, Flows):
                return cls(framing, queue=_FILLED * network.model.queue, burst=network.model.burst)
            case NoTcp():
                return cls(framing)
            case Lv08():
                fitted = Framing(1 / tcp.bandwidth_factor, _LV08_CROSS_TRAFFIC)
                return cls(fitted, tcp.latency_factor, tcp.window, tcp.sharing_size)
            case Windows():
                slow_start = SlowStart(tcp.initial_window * float(FULL_FRAME), tcp.idle_restart)
                return cls(framing, window=tcp.receive_window * framing.data, slow_start=slow_start)
            case _:
                assert_never(tcp)

    def weight(self, latency: float, bytes_per_second: Iterable[float]) -> int:
        """The weight of a flow by its route's latency and links: its share of full links is proportional to it."""
        if self.sharing_size is None:
            return 1
        seconds = latency + sum(self.sharing_size / max(capacity, 1.0) for capacity in bytes_per_second)
        return max(1, round(_WEIGHT / max(seconds, _LEAST_SECONDS)))

    def most_under_way(self, loss: float) -> float:
        """The largest window for a loss rate (Mathis et al., 1997, with every frame acknowledged)."""
        return min(self.window, FULL_FRAME * math.sqrt(1.5 / loss)) if loss else self.window


IDEAL = TcpModel()
"""Only links limit messages."""
_LV08_CROSS_TRAFFIC = 0.05
"""SimGrid's `network/crosstraffic`."""


@dataclass
class Connection:
    """A window and the message being sent; sizes in bytes on links."""

    window: float
    largest: float
    """The largest window."""
    round_trip: float
    """Seconds."""
    round_began: float = -math.inf
    sent: float = 0.0
    """In this round, or about to be sent."""
    idle_since: float = math.inf
    begin: Begin | None = None
    """This and the following fields are of the present message."""
    done: Call | None = None
    flow: int | None = None
    """The number of the present flow; None between two rounds."""
    flow_began: float = 0.0
    part: float = 0.0
    """The size of that flow."""
    later: float = 0.0
    """Bytes to send after it."""
    is_paced: bool = False
    """Whether acknowledgements arrive continuously, so that it does not wait for rounds."""

    def open_round(self, now: float) -> None:
        if 2 * self.sent > self.window:
            self.window = min(self.largest, self.window + self.sent)
        self.round_began, self.sent, self.is_paced = now, 0.0, False

    def shrink(self, idle: float, initial: float) -> None:
        """Nothing has been sent for so many seconds (RFC 2861)."""
        if idle > 0 and self.round_trip:
            halvings = idle // (self.round_trip + _LEAST_TIMEOUT)
            self.window = max(min(self.window, initial), self.window * 0.5**halvings)


def message_rates(
    routing: Routing,
    bytes_per_second: Sequence[float],
    pairs: Sequence[tuple[int, int]],
    framing: Framing,
    most: Sequence[float],
    weights: Sequence[int] | None = None,
) -> list[tuple[float, float]]:
    """The rate of messages for each (sender, receiver): alone, and if all send at once.

    `bytes_per_second` are the capacities of links; flows are bound to `most` bytes per second on links, and may have
    weights.
    """
    routes = [routing.route(*pair).links for pair in pairs]
    return_routes = [routing.route(receiver, sender).links for sender, receiver in pairs]
    shared = max_min_rates(routes, bytes_per_second, return_routes, framing.acknowledgements, most, weights)
    alone = (min(*(bytes_per_second[link] for link in route), bound) for route, bound in zip(routes, most, strict=True))
    return [(one / framing.data, other / framing.data) for one, other in zip(alone, shared, strict=True)]


class Connections:
    """Connections by name, each of which sends one message at a time."""

    def __init__(self, event_queue: EventQueue, network: FlowNetwork, slow_start: SlowStart) -> None:
        self._event_queue = event_queue
        self._network = network
        self._slow_start = slow_start
        self._connections: dict[Hashable, Connection] = {}

    def send(self, name: Hashable, size: float, begin: Begin, done: Call, *, round_trip: float, largest: float) -> None:
        """Send a message of `size` bytes on links by flows of `begin`; `done` is called after its last byte.

        At most `largest` bytes are sent per `round_trip` (s); if that is 0, there is no limit.
        """
        connection = self._connections.get(name)
        if connection is None:
            window = min(self._slow_start.initial, largest) if round_trip else math.inf
            connection = self._connections[name] = Connection(window, largest, round_trip)
        connection.begin, connection.done, connection.later = begin, done, size
        now = self._event_queue.now
        if connection.is_paced and now < connection.idle_since + round_trip:
            self._send_rest(name)
        elif now >= connection.round_began + round_trip:
            connection.open_round(now)
            if self._slow_start.idle_restart:
                connection.shrink(now - connection.idle_since, self._slow_start.initial)
            self._send_window(name)
        elif connection.sent + _LEAST_PART < connection.window:
            self._send_window(name)
        else:
            self._wait(name)

    def remaining(self, names: Sequence[Hashable]) -> list[float]:
        """The bytes that are left to send of these connections' messages."""
        connections = [self._connections[name] for name in names]
        left = {each.flow: each.part for each in connections}
        left[None] = 0.0
        # A flow that starts in this instant gets its rate only at the instant's end.
        begun = [each.flow for each in connections if each.flow is not None and each.flow_began < self._event_queue.now]
        left.update(zip(begun, self._network.remaining(begun), strict=True))
        return [each.later + left[each.flow] for each in connections]

    def cut(self, name: Hashable) -> None:
        connection = self._connections.pop(name, None)
        if connection is not None and connection.flow is not None:
            self._network.cut(connection.flow)

    def _send_window(self, name: Hashable) -> None:
        connection = self._connections[name]
        room = connection.window - connection.sent
        part = connection.later if connection.later < room + _LEAST_PART else room
        connection.sent = min(connection.window, connection.sent + part)
        self._begin(name, part, math.inf)

    def _send_rest(self, name: Hashable) -> None:
        """Send the rest of the message, paced by acknowledgements."""
        connection = self._connections[name]
        connection.is_paced, connection.sent = True, 0.0
        self._begin(name, connection.later, connection.largest / connection.round_trip)

    def _begin(self, name: Hashable, part: float, most: float) -> None:
        connection = self._connections[name]
        assert connection.begin is not None
        connection.part, connection.flow_began = part, self._event_queue.now
        connection.later -= part
        connection.flow = connection.begin(part, partial(self._ended, name), most)

    def _ended(self, name: Hashable) -> None:
        connection = self._connections[name]
        now = self._event_queue.now
        connection.flow, connection.idle_since = None, now
        if not connection.later:
            done, connection.begin, connection.done = connection.done, None, None
            assert done is not None
            done()
        elif now >= connection.round_began + connection.round_trip:
            self._send_rest(name)
        else:
            self._wait(name)

    def _wait(self, name: Hashable) -> None:
        connection = self._connections[name]
        rest = connection.round_began + connection.round_trip - self._event_queue.now
        self._event_queue.after(rest, partial(self._next_round, name, connection))

    def _next_round(self, name: Hashable, connection: Connection) -> None:
        if self._connections.get(name) is not connection:
            return  # It was cut.
        connection.open_round(self._event_queue.now)
        if connection.window < connection.largest or connection.later <= connection.window:
            self._send_window(name)
        else:
            self._send_rest(name)
