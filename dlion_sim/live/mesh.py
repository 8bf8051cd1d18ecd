"""What a node exchanges with its peers, over connections to and from each, one a channel.

So what is of one channel never waits behind what is of another, and the links are those that the simulator models.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from dlion_sim.assembly import Transfer
from dlion_sim.live.bounded_loss import BoundedLoss
from dlion_sim.live.frames import Kind, News, Payload, PeerError
from dlion_sim.live.notices import Notice
from dlion_sim.live.outbox import Outbox
from dlion_sim.live.rendezvous import Connection, Connections, Lane
from dlion_sim.live.sockets import FrameReader, PeerClosedError, acknowledge_at_once, end
from dlion_sim.protocol.faults import MalformedMessageError
from dlion_sim.protocol.messages import Channel, Message, decode

_FAREWELL_SECONDS = 2.0
"""For which last words may take to leave."""
_HEADER_BYTES = 8192
"""More than the header of any message."""
_LARGEST_ENTRY_BYTES = 8
_RANK = struct.Struct("<I")
_NO_MESSAGE = "sent no message of this run"


class Hub(Protocol):
    """What links report to."""

    @property
    def now(self) -> float:
        """The run's clock, in seconds."""

    def arrived(self, message: Message) -> None:
        """A peer's message is here, whole. Raises MalformedMessageError for one that no honest peer sends."""

    def left(self, transfer: Transfer) -> None:
        """The last byte of a message has left this machine."""

    def sent(self, peer: int, message: Message) -> None:
        """The last byte of a message on the data channel has left, or never will."""

    def timed(self, peer: int, message: Message, seconds: float) -> None:
        """The link took so many seconds for a message on the data channel that has left."""

    def heard(self, kind: News, rank: int) -> None:
        """News of a participant."""

    def lost(self, peer: int, reason: str) -> None:
        """A peer's connections have ended; nothing from it comes any more."""


class Mesh:
    """A node's part in the mesh of nodes: its links to and from each peer, once it is connected.

    Messages are of one of `participants` and of models with `parameters` entries. Peers are dropped after `silence`
    seconds without a sign of life, or without taking a byte of what they are sent. Messages from peers in `delays` are
    handed over so many seconds after they have come. With `datagrams`, messages go in these that may lose a part.
    """

    def __init__(
        self,
        *,
        participants: int,
        parameters: int,
        silence: float,
        delays: Mapping[int, float],
        tasks: asyncio.TaskGroup,
        hub: Hub,
        datagrams: BoundedLoss | None = None,
    ) -> None:
        self._participants = participants
        self._parameters = parameters
        self._limit = _HEADER_BYTES + _LARGEST_ENTRY_BYTES * parameters
        self._silence = silence
        self._delays = delays
        self._tasks = tasks
        self._hub = hub
        self._datagrams = datagrams
        self._running: list[asyncio.Task[None]] = []
        self._connections = Connections()
        self._outboxes: dict[Lane, Outbox] = {}
        self._dropped: set[int] = set()
        self._last: tuple[Message, Payload] | None = None

    def begin(self, connections: Connections) -> None:
        """Send and receive on these."""
        self._connections = connections
        if self._datagrams:
            self._datagrams.begin(connections, self)
        for lane, connection in connections.outgoing.items():
            self._outboxes[lane] = self._outbox(lane, connection)
            self._start(self._outboxes[lane].run())
        for lane, connection in connections.incoming.items():
            self._start(self._receive(lane, connection))
        self._start(self._stay_alive())

    def send(self, peer: int, message: Message) -> None:
        """Queue a message."""
        # A message that goes to many comes many times in succession.
        if self._last is None or self._last[0] is not message:
            self._last = message, Payload(message.buffers)
        self._outboxes[peer, message.body.channel].put(Kind.MESSAGE, self._last[1], message)

    def tell(self, kind: Kind, rank: int | None = None) -> None:
        """Tell every peer some news."""
        payload = Payload() if rank is None else Payload((_RANK.pack(rank),))
        for outbox in self._control():
            outbox.put(kind, payload)

    def tell_of(self, peer: int, kind: Kind, notice: Notice) -> None:
        """Tell a peer something of a message in datagrams."""
        self._outboxes[peer, Channel.CONTROL].put(kind, notice.payload())

    def under_way(self) -> Iterator[tuple[Transfer, float]]:
        """Every message that has begun to leave and not left whole, and how many of its bytes have arrived."""
        for outbox in self._outboxes.values():
            yield from outbox.under_way()

    async def close(self) -> None:
        """End all connections, once what was told has left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await asyncio.gather(*(outbox.flush() for outbox in self._control()))
        if self._datagrams:
            self._datagrams.close()
        for task in self._running:
            task.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._running.append(self._tasks.create_task(work))

    def _outbox(self, lane: Lane, connection: Connection) -> Outbox:
        peer, channel = lane
        return Outbox(
            connection,
            peer,
            channel,
            now=lambda: self._hub.now,
            timeout=self._silence,
            left=self._hub.left,
            sent=partial(self._hub.sent, peer),
            timed=partial(self._hub.timed, peer),
            failed=partial(self.failed, peer),
            datagrams=self._datagrams.on(lane) if self._datagrams else None,
        )

    def _control(self) -> list[Outbox]:
        return [outbox for (_, channel), outbox in self._outboxes.items() if channel is Channel.CONTROL]

    async def _stay_alive(self) -> None:
        while True:
            self.tell(Kind.ALIVE)
            await asyncio.sleep(self._silence / 3)

    async def _receive(self, lane: Lane, connection: Connection) -> None:
        """Take in what comes on a connection."""
        peer, channel = lane
        control = channel is Channel.CONTROL
        if channel is Channel.DATA:
            acknowledge_at_once(connection.socket)
        frames = FrameReader(
            connection.socket,
            connection.seal,
            limit=self._limit,
            timeout=self._silence,
            idle=self._silence if control else None,
        )
        with connection.socket:
            try:
                while True:
                    frame = await frames.read()
                    if peer in self._dropped:
                        return
                    self._take(lane, *frame)
                    await asyncio.sleep(0)  # A fast peer must not keep the others waiting.
            except PeerClosedError as error:
                # A good-bye would have come on the control connection: its end tells more than that of others.
                if control:
                    self._drop(peer, str(error))
            except PeerError as error:
                self._drop(peer, str(error))

    def _take(self, lane: Lane, kind: Kind, payload: memoryview) -> None:
        peer, channel = lane
        match kind:
            case Kind.MESSAGE:
                self._take_message(peer, payload)
            case Kind.READY | Kind.GONE:
                self._hub.heard(kind, self._rank(payload))
            case Kind.DONE:
                self._hub.heard(kind, peer)
            case Kind.ALIVE | Kind.PROBE:
                pass
            case Kind.START | Kind.QUERY | Kind.BITMAP | Kind.STOP if self._datagrams and channel is Channel.CONTROL:
                self._datagrams.heard(peer, kind, payload)
            case _:
                raise PeerError(f"sent a {kind.name} out of place")

    def _take_message(self, peer: int, payload: memoryview) -> None:
        try:
            message = decode(payload, workers=self._participants, parameters=self._parameters)
            if message.sender != peer:
                raise MalformedMessageError(f"it is in the name of node {message.sender}")
        except MalformedMessageError as error:
            raise PeerError(f"{_NO_MESSAGE}: {error}") from None
        self.came(peer, message)

    def came(self, peer: int, message: Message) -> None:
        """A message from a peer is here, whole or as much of it as is to be."""
        if delay := self._delays.get(peer):
            asyncio.get_running_loop().call_later(delay, self._hand_over, peer, message)
        else:
            self._hand_over(peer, message)

    def _hand_over(self, peer: int, message: Message) -> None:
        if peer in self._dropped:
            return
        try:
            self._hub.arrived(message)
        except MalformedMessageError as error:
            self._drop(peer, f"{_NO_MESSAGE}: {error}")

    def _rank(self, payload: memoryview) -> int:
        if len(payload) == _RANK.size:
            (rank,) = _RANK.unpack(payload)
            if rank < self._participants:
                return int(rank)
        raise PeerError("sent news of nobody")

    def failed(self, peer: int, error: PeerError) -> None:
        """Nothing can be sent to a peer any more, or it has sent what it may not."""
        if isinstance(error, PeerClosedError):
            # It may have said good-bye: its own control connection tells. If not, it learns of this from ours.
            self._hang_up(peer)
        else:
            self._drop(peer, str(error))

    def _drop(self, peer: int, reason: str) -> None:
        """End all connections with a peer."""
        if peer in self._dropped:
            return
        self._dropped.add(peer)
        self._hang_up(peer)
        for channel in Channel:
            end(self._connections.incoming[peer, channel].socket)
        self._hub.lost(peer, reason)

    def _hang_up(self, peer: int) -> None:
        for channel in Channel:
            self._outboxes[peer, channel].hang_up()
        if self._datagrams:
            self._datagrams.hang_up(peer)
