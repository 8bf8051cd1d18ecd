"""TCP connections whose windows open round by round, over a flow network.

A round is a round trip. In each, a connection sends what its window lets it, at its fair rate, and waits for the round
to be over, when the first of that is acknowledged. If that was more than half of the window, this grows by as much
(slow start; Linux's `tcp_is_cwnd_limited`). What does not fit into a round fills the links: from then on the rest goes
at its fair rate, as acknowledgements come, and so does what follows at once. It never goes faster than by the largest
window a round trip, beyond which windows do not grow.

Not modelled: what comes of a loss. So there is no congestion avoidance, and windows only shrink while nothing is sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial

from dlion_sim.simulation.event_queue import Call, EventQueue
from dlion_sim.simulation.flows import FlowNetwork
from dlion_sim.simulation.tcp import SlowStart

_LEAST_TIMEOUT = 0.2
"""Seconds that Linux adds to a round trip before it takes a segment for lost."""
_LEAST_PART = 0.5
"""Bytes: no round is for less, which rounding may leave."""

Begin = Callable[[float, Call, float], int]
"""Begins a flow of so many bytes, calls when that has been sent, bounds its rate (bytes per second); its number."""


@dataclass
class Connection:
    """A window and what is under way in it; sizes in bytes on links."""

    window: float
    largest: float
    """The window never grows beyond that."""
    round_trip: float
    """Seconds."""
    round_began: float = -math.inf
    sent: float = 0.0
    """In this round, or about to be sent."""
    idle_since: float = math.inf
    begin: Begin | None = None
    """Of the present message, as all that follows."""
    done: Call | None = None
    flow: int | None = None
    """None between two rounds."""
    flow_began: float = 0.0
    part: float = 0.0
    """The size of that flow."""
    later: float = 0.0
    """What is left to send after it."""
    is_paced: bool = False
    """Whether acknowledgements come all the time, so that no round has to be waited for."""

    def open_round(self, now: float) -> None:
        """A round begins, as the last one is over."""
        if 2 * self.sent > self.window:
            self.window = min(self.largest, self.window + self.sent)
        self.round_began, self.sent, self.is_paced = now, 0.0, False

    def shrink(self, idle: float, initial: float) -> None:
        """Nothing has been sent for so many seconds (RFC 2861)."""
        if idle > 0 and self.round_trip:
            halvings = idle // (self.round_trip + _LEAST_TIMEOUT)
            self.window = max(min(self.window, initial), self.window * 0.5**halvings)


class Connections:
    """Connections by name, each of which sends a message at a time."""

    def __init__(self, event_queue: EventQueue, network: FlowNetwork, slow_start: SlowStart) -> None:
        self._event_queue = event_queue
        self._network = network
        self._slow_start = slow_start
        self._connections: dict[Hashable, Connection] = {}

    def send(self, name: Hashable, size: float, begin: Begin, done: Call, *, round_trip: float, largest: float) -> None:
        """Send a message of `size` bytes on links by flows that `begin` begins; `done` is called after its last byte.

        In a round trip, of so many seconds, a window of at most `largest` bytes is under way; in one of 0 s any number.
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
        """A connection ends here, with what it was sending."""
        connection = self._connections.pop(name, None)
        if connection is not None and connection.flow is not None:
            self._network.cut(connection.flow)

    def _send_window(self, name: Hashable) -> None:
        """Send what this round still has room for."""
        connection = self._connections[name]
        room = connection.window - connection.sent
        part = connection.later if connection.later < room + _LEAST_PART else room
        connection.sent = min(connection.window, connection.sent + part)
        self._begin(name, part, math.inf)

    def _send_rest(self, name: Hashable) -> None:
        """Send all that is left, as acknowledgements come."""
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
        """The last byte of a flow has been sent."""
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
        """Go on when this round is over."""
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
