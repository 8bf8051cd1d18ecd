"""A node's connections with one peer, until the peer is lost.

There is one per channel and direction, so that channels never wait for each other, as in the simulator.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from dlion_sim.assembly import Transfer
from dlion_sim.live.bounded_loss import BoundedLoss
from dlion_sim.live.connection import Connection
from dlion_sim.live.frames import Kind, News, Payload, PeerError
from dlion_sim.live.notices import Notice, parse
from dlion_sim.live.outbox import Outbox
from dlion_sim.live.pair import Connections
from dlion_sim.live.tls_stream import PeerClosedError
from dlion_sim.protocol.messages import Channel, MalformedMessageError, Message, decode

_HEADER_BYTES = 8192
"""More than the header of any message."""
_LARGEST_ENTRY_BYTES = 8
_LAST_SECONDS = 2.0
"""The most that the end of a control connection waits for the ends of the others."""
RANK = struct.Struct("<I")
_NO_MESSAGE = "sent no message of this run"


class Hub(Protocol):
    """Receives the reports of links."""

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
        """A peer's connections have ended; nothing more arrives from it, unless it connects anew."""


@dataclass(frozen=True)
class Terms:
    """The limits of all links: messages of so many participants, models of so many entries.

    Peers are dropped after `silence` seconds without a sign of life, or without any progress of what they are sent.
    """

    participants: int
    parameters: int
    silence: float


class Session:
    """The connections with `peer`, whose messages are handed over `delay` seconds after their arrival."""

    def __init__(
        self,
        peer: int,
        connections: Connections,
        terms: Terms,
        delay: float,
        hub: Hub,
        tasks: asyncio.TaskGroup,
        datagrams: BoundedLoss | None,
    ) -> None:
        self._peer = peer
        self._incoming = connections.incoming
        self._terms = terms
        self._delay = delay
        self._hub = hub
        self._is_over = False
        self._lanes = datagrams.lanes(self, peer, connections) if datagrams else {}
        self._outboxes = {
            channel: Outbox(
                connection,
                peer,
                channel,
                hub,
                timeout=terms.silence,
                failed=self.failed,
                lane=self._lanes.get(channel),
            )
            for channel, connection in connections.outgoing.items()
        }
        self._tasks = tasks
        self._running: list[asyncio.Task[None]] = []
        for channel, outbox in self._outboxes.items():
            self._run(outbox.run(), connections.outgoing[channel])
        receiving = {
            channel: self._run(self._receive(channel, connection), connection)
            for channel, connection in self._incoming.items()
        }
        self._others = [task for channel, task in receiving.items() if channel is not Channel.CONTROL]

    def send(self, channel: Channel, kind: Kind, payload: Payload, message: Message | None = None) -> None:
        """Queue a frame, which may carry a `message`."""
        self._outboxes[channel].put(kind, payload, message)

    def tell(self, notice: Notice) -> None:
        """Send a notice of a message in datagrams."""
        self.send(Channel.CONTROL, Kind.NOTICE, notice.payload())

    async def flush(self) -> None:
        """Wait until all control frames have left."""
        await self._outboxes[Channel.CONTROL].flush()

    def under_way(self) -> Iterator[tuple[Transfer, float]]:
        """Every message that is being sent, and how many of its bytes have arrived."""
        for outbox in self._outboxes.values():
            yield from outbox.under_way()

    def acknowledgements_a_frame(self) -> float:
        """How many have come for each full frame of data so far."""
        return self._outboxes[Channel.DATA].acknowledgements_a_frame()

    def came(self, message: Message) -> None:
        """A message from the peer has arrived, or as much of it as will."""
        if self._delay:
            asyncio.get_running_loop().call_later(self._delay, self._hand_over, message)
        else:
            self._hand_over(message)

    def failed(self, error: PeerError) -> None:
        """Nothing can be sent to the peer any more, or it has sent what it may not."""
        if isinstance(error, PeerClosedError):
            # The peer may be done, which its control connection tells. If not, it learns of this from ours.
            self._hang_up()
        else:
            self.drop(str(error))

    def drop(self, reason: str) -> None:
        """End all connections; the hub learns of it, once."""
        if self._is_over:
            return
        self._is_over = True
        self._hang_up()
        for connection in self._incoming.values():
            connection.end()
        self._hub.lost(self._peer, reason)

    def close(self) -> None:
        """Close the connections, without reports on what was still to be sent."""
        for task in self._running:
            task.cancel()

    def _run(self, work: Coroutine[Any, Any, None], connection: Connection) -> asyncio.Task[None]:
        """Run a connection's task, which closes it at its end, even if it is cancelled before it begins."""
        task = self._tasks.create_task(work)
        task.add_done_callback(lambda _: connection.close())
        self._running.append(task)
        return task

    async def _receive(self, channel: Channel, connection: Connection) -> None:
        """Handle the frames of a connection."""
        control, silence = channel is Channel.CONTROL, self._terms.silence
        limit = _HEADER_BYTES + _LARGEST_ENTRY_BYTES * self._terms.parameters
        if channel is Channel.DATA:  # Its sender times messages by acknowledgements, and nothing is sent back.
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        try:
            while True:
                frame = await connection.read(limit=limit, timeout=silence, idle=silence if control else None)
                if self._is_over:
                    return
                self._take(channel, *frame)
                await asyncio.sleep(0)  # A fast peer must not delay the others.
        except PeerClosedError as error:
            # Only the control connection tells whether the peer was done.
            if control:
                await self._all_is_handed_over()
                self.drop(str(error))
        except PeerError as error:
            self.drop(str(error))

    async def _all_is_handed_over(self) -> None:
        """Wait for what the peer sent before its end, which that of the control connection may overtake."""
        await asyncio.wait(self._others, timeout=_LAST_SECONDS)
        await asyncio.sleep(self._delay)

    def _take(self, channel: Channel, kind: Kind, payload: memoryview) -> None:
        match kind:
            case Kind.MESSAGE:
                self._take_message(payload)
            case Kind.READY | Kind.GONE:
                self._hub.heard(kind, self._rank(payload))
            case Kind.DONE:
                self._hub.heard(kind, self._peer)
            case Kind.ALIVE | Kind.PROBE:
                pass
            case Kind.NOTICE if self._lanes and channel is Channel.CONTROL:
                notice = parse(payload)
                self._lanes[notice.channel].heard(notice)
            case _:
                raise PeerError(f"sent a {kind.name} out of place")

    def _take_message(self, payload: memoryview) -> None:
        terms = self._terms
        try:
            message = decode(payload, workers=terms.participants, parameters=terms.parameters)
            if message.sender != self._peer:
                raise MalformedMessageError(f"it is in the name of node {message.sender}")
        except MalformedMessageError as error:
            raise PeerError(f"{_NO_MESSAGE}: {error}") from None
        self.came(message)

    def _hand_over(self, message: Message) -> None:
        if self._is_over:
            return
        try:
            self._hub.arrived(message)
        except MalformedMessageError as error:
            self.drop(f"{_NO_MESSAGE}: {error}")

    def _rank(self, payload: memoryview) -> int:
        if len(payload) == RANK.size:
            (rank,) = RANK.unpack(payload)
            if rank < self._terms.participants:
                return int(rank)
        raise PeerError("sent news of nobody")

    def _hang_up(self) -> None:
        for outbox in self._outboxes.values():
            outbox.hang_up()
        for lane in self._lanes.values():
            lane.hang_up()
