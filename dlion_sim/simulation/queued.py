"""Connections whose last bytes wait in the network, as TCP fills the queue before a bottleneck.

When the last bytes of a message wait there, its sender's NIC is free for other messages already. The queue of a
connection is before the tightest link of its route. It fills up while the links before it are faster than the rest of
the route, and is drained while they are slower. So a connection is one of

- *joint*: one flow over the whole route, beside a queue that stays empty, or full;
- *apart*: a flow over the links before the queue and one over the rest, with a queue that grows or shrinks.

One that is apart becomes joint when its queue is empty or full. It is apart again when the links before the tightest
one could carry more than that takes from an empty queue, or the rest more than what comes into a full one. If a link
beyond the queue becomes the tightest, and those in between could carry more, the queue moves there: what waits has yet
to cross those in between, and for simplicity those before once more.

Links may be token buckets, which fill up while their links are not full. The first bytes of a message that finds those
of its route filled pass at once.

Not modelled: that windows must grow before they fill a queue, and shrink after a loss.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial

import numpy as np
import numpy.typing as npt

from dlion_sim.assembly import Transfer
from dlion_sim.protocol.messages import Channel
from dlion_sim.scenario.network import BURST_SECONDS, FULL_FRAME
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.flows import FlowNetwork
from dlion_sim.simulation.progressive_filling import LONGEST_ROUTE

Name = tuple[int, int, Channel]
"""Sender, receiver, channel."""
Route = Sequence[int]
_NOTHING = 0.5
"""Bytes: less than that is a rounding error."""
_LEAST = 1.0
"""Bytes of a message that do not pass at once, so that it takes a flow."""
_SAME = 1e-6
"""Rates that differ by less, relatively, are the same."""
_ROOM = 64


class Mode(IntEnum):
    """What may happen to a connection when rates change."""

    SETTLED = 0
    """Nothing: it has no flows, or its sender has nothing to send, or its route is a single link."""
    EMPTY = 1
    """Joint, with an empty queue."""
    FULL = 2
    """Joint, with a full one."""
    APART = 3


_REVIEWED = np.dtype(
    [
        ("mode", np.int8),
        ("flows", np.int64, 2),  # if joint or apart: the numbers of those out and on
        ("links", np.int64, LONGEST_ROUTE),  # of the route; the last one again where it is shorter
        ("queue", np.int64),  # the place in the route of the link before which bytes wait
        ("backlog", np.float64),  # if apart: bytes in the queue when both flows will have ended
        ("since", np.float64),  # if apart: since when
        ("due", np.float64),  # if apart: when the queue will be full or empty
    ]
)
"""What a review of all connections needs of each."""


@dataclass(eq=False)
class Flow:
    """A flow of a connection."""

    size: float
    """Bytes on links."""
    began: float
    number: int = -1


@dataclass(eq=False)
class Undelivered:
    """A message that has not arrived whole, or the probe behind it."""

    transfer: Transfer
    remaining: float
    """Bytes on links that had yet to arrive when the present flows began."""
    left: float = math.inf
    """When its last byte left the sender."""
    share: float = 1.0
    """The message's bytes over those that are timed: with its probe, without what passed at once."""
    is_probe: bool = False


@dataclass(eq=False)
class QueuedConnection:
    """The state of a connection."""

    name: Name
    place: int
    """In the array of all connections."""
    unsent: float = 0.0
    """Bytes on links that had yet to leave the sender when the present flows began."""
    messages: deque[Undelivered] = field(default_factory=deque)
    """Those that have not arrived whole; the sender may still be sending the last one."""
    out: Flow | None = None
    """What leaves the sender; None if the sender has nothing to send."""
    on: Flow | None = None
    """What arrives; if it is joint, the same flow."""
    arrived: float = -math.inf
    """When the last message had arrived."""
    is_new: bool = True
    """Whether nothing was sent yet."""

    @property
    def backlog(self) -> float:
        """Bytes that waited in the queue when the present flows began."""
        return sum(each.remaining for each in self.messages) - self.unsent

    @property
    def not_arrived(self) -> float:
        """Bytes of the message being sent, and of its probe, that had yet to arrive when the present flows began."""
        last = self.messages[-1]
        before = self.messages[-2].remaining if last.is_probe and len(self.messages) > 1 else 0.0
        return before + last.remaining

    @property
    def is_sending(self) -> bool:
        return bool(self.messages) and self.messages[-1].left == math.inf


class QueuedConnections:
    """Connections by name, with a queue of `size` bytes each, over links of a network with buckets of `burst` bytes.

    Each sends one message at a time, over `routes` there and back. `left` is called with its name when the message's
    last byte has left the sender, and `arrived` when it has arrived; so is `timed`, with the seconds that links took
    for it and when it had left. If a probe follows it, it has left with the probe, and is timed by both.
    """

    def __init__(
        self,
        event_queue: EventQueue,
        network: FlowNetwork,
        size: float,
        burst: float = 0.0,
        *,
        routes: Callable[[Name], tuple[Route, Route]],
        left: Callable[[Name], None],
        arrived: Callable[[Transfer], None],
        timed: Callable[[Transfer, float, float], None],
    ) -> None:
        self._event_queue = event_queue
        self._network = network
        self._size = size
        self._burst = burst
        self._emptied = np.full(len(network.bytes_per_second), -math.inf)
        """When the bucket of each link last became empty (s)."""
        self._routes = routes
        self._left = left
        self._arrived = arrived
        self._timed = timed
        self._connections: dict[Name, QueuedConnection] = {}
        self._at: list[QueuedConnection] = []
        """By their places in the array."""
        self._reviewed = np.zeros(_ROOM, _REVIEWED)
        self._next_due = math.inf
        network.settled = self._review

    def send(self, name: Name, transfer: Transfer, size: float, probe: float) -> None:
        """Send a message of `size` bytes on links, behind what waits in the queue.

        A connection's first one is followed by so many bytes of a `probe`.
        """
        connection = self._connections.get(name) or self._open(name)
        self._halt(connection)
        backlog = connection.backlog
        remaining = max(_LEAST, size - self._at_once(connection)) if self._burst else size
        follows = probe if connection.is_new else 0.0
        connection.unsent = remaining + follows
        share = size / connection.unsent
        connection.messages.append(Undelivered(transfer, remaining, share=share))
        if follows:
            connection.messages.append(Undelivered(transfer, follows, share=share, is_probe=True))
        connection.is_new = False
        joint = Mode.EMPTY if not backlog else Mode.FULL if backlog > self._size - _NOTHING else None
        self._go(connection, joint or Mode.APART)

    def under_way(self, names: Iterable[Name] | None = None) -> Iterator[tuple[Transfer, float]]:
        """The messages that have not arrived, of all connections or of these, and their bytes on links that have yet
        to."""
        for name in self._connections if names is None else names:
            if connection := self._connections.get(name):
                moved = self._moved(connection.on) if connection.on else 0.0
                for each in connection.messages:
                    if not each.is_probe:
                        yield each.transfer, each.remaining - moved
                    moved = 0.0

    def cut(self, name: Name) -> None:
        """Drop all that has not arrived."""
        if connection := self._connections.get(name):
            self._halt(connection)
            connection.messages.clear()
            connection.unsent, connection.arrived, connection.is_new = 0.0, -math.inf, True

    def busy(self) -> Iterator[Name]:
        """The names of those with messages that have not arrived."""
        return (name for name, connection in self._connections.items() if connection.messages)

    def _open(self, name: Name) -> QueuedConnection:
        place = len(self._at)
        if place == len(self._reviewed):
            self._reviewed = np.concatenate([self._reviewed, np.zeros_like(self._reviewed)])
        links = self._routes(name)[0]
        self._reviewed["queue"][place] = min(1, len(links) - 1)
        self._reviewed["links"][place] = [*links, *[links[-1]] * (LONGEST_ROUTE - len(links))]
        connection = self._connections[name] = QueuedConnection(name, place)
        self._at.append(connection)
        return connection

    def _at_once(self, connection: QueuedConnection) -> float:
        """Take the bytes that a message may send at once from the buckets of its route."""
        links = self._reviewed["links"][connection.place]
        now = self._event_queue.now
        slowest: float = min(self._network.bytes_per_second[link] for link in links)
        if not slowest or np.isfinite(self._network.levels(links)).any():
            return 0.0
        since = now - float(self._emptied[links].max())
        self._emptied[links] = now
        return min(since * slowest, max(self._burst, BURST_SECONDS * slowest))

    def _moved(self, flow: Flow) -> float:
        """The bytes that a flow has carried."""
        if not self._network.has(flow.number):
            return flow.size
        if flow.began == self._event_queue.now:
            return 0.0  # Its rate is known at the end of the instant.
        return flow.size - self._network.remaining([flow.number])[0]

    def _halt(self, connection: QueuedConnection) -> None:
        """End its flows, and account for what they have carried."""
        out, on = connection.out, connection.on
        if out is not None:
            connection.unsent = max(0.0, connection.unsent - self._moved(out))
        if on is not None:
            first = connection.messages[0]
            first.remaining = max(0.0, first.remaining - self._moved(on))
        for flow in (out,) if out is on else (out, on):
            if flow is not None and self._network.has(flow.number):
                self._network.cut(flow.number)
        connection.out = connection.on = None
        self._reviewed["mode"][connection.place] = Mode.SETTLED

    def _go(self, connection: QueuedConnection, mode: Mode) -> None:
        """Begin the flows of a connection with messages that have not arrived."""
        route, return_route = self._routes(connection.name)
        queue = int(self._reviewed["queue"][connection.place])
        unsent, remaining = connection.unsent, connection.messages[0].remaining
        if not connection.is_sending:
            mode = Mode.SETTLED
            connection.on = self._begin(connection, remaining, route[queue:], return_route)
        elif mode is not Mode.APART or len(route) == 1:
            mode = mode if len(route) > 1 else Mode.SETTLED
            connection.on = connection.out = self._begin(connection, min(unsent, remaining), route, return_route)
        else:
            connection.out = self._begin(connection, unsent, route[:queue], ())
            connection.on = self._begin(connection, remaining, route[queue:], return_route)
            later = sum(each.remaining for each in connection.messages) - remaining
            self._reviewed["backlog"][connection.place] = later
            self._reviewed["since"][connection.place] = self._event_queue.now
        self._reviewed["mode"][connection.place] = mode
        if mode is not Mode.SETTLED:
            numbers = [flow.number for flow in (connection.out, connection.on) if flow]
            self._reviewed["flows"][connection.place] = numbers

    def _begin(self, connection: QueuedConnection, size: float, route: Route, return_route: Route) -> Flow:
        flow = Flow(size, self._event_queue.now)
        flow.number = self._network.start(route, size, partial(self._ended, connection, flow), return_route)
        return flow

    def _ended(self, connection: QueuedConnection, flow: Flow) -> None:
        if flow is not connection.out and flow is not connection.on:
            return  # Another one of its connection ended in the same instant.
        now, is_sending = self._event_queue.now, connection.is_sending
        mode = Mode(self._reviewed["mode"][connection.place])
        self._halt(connection)
        last, first = connection.messages[-1], connection.messages[0]
        has_arrived = first.remaining < _NOTHING
        if has_arrived:
            connection.messages.popleft()
        # What has arrived has left: that a queue is empty is known up to a frame late.
        if is_sending and (connection.unsent < _NOTHING or not connection.messages):
            connection.unsent, last.left = 0.0, now
            self._left(connection.name)
        if has_arrived and not first.is_probe:
            self._arrived(first.transfer)
        has_probe = bool(connection.messages) and connection.messages[0].is_probe
        if has_arrived and not has_probe:
            seconds = now - max(first.transfer.began, connection.arrived)
            connection.arrived = now
            self._emptied[self._reviewed["links"][connection.place]] = now
            self._timed(first.transfer, seconds * first.share, first.left)
        if connection.messages and connection.on is None:
            self._go(connection, mode)

    def _review(self) -> None:
        """After each computation of rates: take apart what is no longer joint, move queues to links that have become
        the tightest, and plan what will be joint next."""
        mode = self._reviewed["mode"][: len(self._at)]
        stays_apart = mode == Mode.APART
        for place, queue in self._unequal(np.flatnonzero(mode != Mode.SETTLED)).items():
            stays_apart[place] = False
            connection = self._at[place]
            self._halt(connection)
            if queue > self._reviewed["queue"][place]:  # What waits has yet to cross the links in between.
                connection.unsent = min(connection.unsent + connection.backlog, connection.not_arrived)
            self._reviewed["queue"][place] = queue
            self._go(connection, Mode.APART)
        self._plan(np.flatnonzero(stays_apart))

    def _unequal(self, places: npt.NDArray[np.int64]) -> dict[int, int]:
        """Which of the connections at these places go apart or have a queue that moves, and before which link of their
        route it will be."""
        if not len(places):
            return {}
        reviewed = self._reviewed[places]
        mode, queue = reviewed["mode"], reviewed["queue"]
        levels = self._network.levels(reviewed["links"])
        rates = (1 + _SAME) * self._network.pace(reviewed["flows"][:, 1])[0]
        first = np.where(mode == Mode.EMPTY, 0, queue)
        link = np.arange(LONGEST_ROUTE)
        behind = np.where(link >= first[:, None], levels, np.inf)
        tightest = behind.argmin(axis=1)
        between = np.where(link < tightest[:, None], behind, np.inf).min(axis=1)
        is_held = behind.min(axis=1) <= rates
        moves = is_held & (tightest > first) & (between > rates)
        changes = moves | (~is_held & (mode == Mode.FULL))
        target = np.where(moves, tightest, queue)
        return dict(zip(places[changes].tolist(), target[changes].tolist(), strict=True))

    def _plan(self, apart: npt.NDArray[np.int64]) -> None:
        """Plan when the queues of those that are apart are full or empty."""
        self._next_due = math.inf
        if not len(apart):
            return
        now = self._event_queue.now
        rates, remaining = self._network.pace(self._reviewed["flows"][apart])
        backlog = self._reviewed["backlog"][apart] - remaining[:, 0] + remaining[:, 1]
        growth, fastest = rates[:, 0] - rates[:, 1], rates.max(axis=1)
        limit = np.where(growth > 0, self._size, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            pauses = (limit - backlog) / growth
            # A frame after they went apart at the earliest, so that nothing changes for ever within an instant.
            pauses = np.maximum(pauses, self._reviewed["since"][apart] + FULL_FRAME / fastest - now)
        pauses = np.maximum(pauses, 0.0)
        pauses[~(np.abs(growth) > _SAME * fastest)] = math.inf
        self._reviewed["due"][apart] = now + pauses
        soonest = float(pauses.min())
        self._next_due = now + soonest
        # In the background, as it may be outdated by then.
        self._event_queue.after(soonest, self._join, background=True)

    def _join(self) -> None:
        """Those whose queue is full or empty by now become joint."""
        now = self._event_queue.now
        if now != self._next_due:
            return
        self._next_due = math.inf
        reviewed = self._reviewed[: len(self._at)]
        for place in np.flatnonzero((reviewed["mode"] == Mode.APART) & (reviewed["due"] <= now)).tolist():
            connection = self._at[place]
            self._halt(connection)
            self._go(connection, Mode.EMPTY if connection.backlog < self._size / 2 else Mode.FULL)
