"""A channel's queue of what is to be sent, in order: in frames, or some messages in datagrams."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from dlion_sim.assembly import Transfer
from dlion_sim.assembly.transfer import PROBE_BYTES
from dlion_sim.live.bounded_loss import Lane
from dlion_sim.live.connection import WEIGHTS_TOS, Connection, frame_bytes
from dlion_sim.live.frames import Kind, Payload, PeerError
from dlion_sim.live.link_timing import Delivery, Meter, acknowledgements_a_frame
from dlion_sim.protocol.messages import Channel, Message

if TYPE_CHECKING:
    from dlion_sim.live.session import Hub

_PROBES = 4
_PROBE = Payload((bytes(PROBE_BYTES // _PROBES),))


class Outbox:
    """The sending end of a channel to `peer`; `failed` is called, once, with what prevents further sending.

    With a `lane`, messages that may lose a part are sent over it, in datagrams.
    """

    def __init__(
        self,
        connection: Connection,
        peer: int,
        channel: Channel,
        hub: Hub,
        *,
        timeout: float,
        failed: Callable[[PeerError], None],
        lane: Lane | None,
    ) -> None:
        self._connection = connection
        self._peer = peer
        self._channel = channel
        self._hub = hub
        self._timeout = timeout
        self._failed = failed
        self._lane = lane
        self._queue: asyncio.Queue[tuple[Kind, Payload, Message | None]] = asyncio.Queue()
        self._untimed: asyncio.Queue[tuple[Message, Delivery | float]] = asyncio.Queue()
        """Messages that have left, and how long their link took for them if that is known."""
        self._meter = Meter(connection.socket)
        self._head: tuple[Transfer, Callable[[], float]] | None = None
        """The message that is being sent, and a function for how many of its bytes have arrived."""
        self._open = True
        self._unknown = channel is Channel.DATA
        """Whether the link's capacity is still unknown. For the other channels it need not be known."""
        if channel is Channel.WEIGHTS and connection.socket.family == socket.AF_INET:  # Emulated networks have no IPv6.
            connection.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, WEIGHTS_TOS)

    def put(self, kind: Kind, payload: Payload, message: Message | None = None) -> None:
        """Queue a frame; `message` is the one that it carries, if any."""
        self._queue.put_nowait((kind, payload, message))

    async def run(self) -> None:
        """Send the queue, for ever. After the connection's end all is dropped, so that nothing waits for it."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._time())
            while True:
                kind, payload, message = await self._queue.get()
                await self._send(kind, payload, message)
                self._queue.task_done()

    async def flush(self) -> None:
        """Wait until all that is queued has left or was dropped."""
        await self._queue.join()

    def under_way(self) -> Iterator[tuple[Transfer, float]]:
        """The message that is being sent, if any, and how many of its bytes have arrived."""
        if self._head is not None:
            transfer, arrived = self._head
            yield transfer, arrived() if self._open else transfer.counted

    def acknowledgements_a_frame(self) -> float:
        """How many have come for each full frame so far."""
        return acknowledgements_a_frame(self._connection.socket)

    def hang_up(self) -> None:
        """End the connection."""
        self._open = False
        self._connection.end()

    async def _send(self, kind: Kind, payload: Payload, message: Message | None) -> None:
        delivery: Delivery | float | None = None
        try:
            if self._open:
                # A link's first message goes by TCP if it is short, for the probe's sake.
                if message and self._lane and self._lane.takes(message) and not self._probes(message.size):
                    delivery = await self._carry(message, self._lane)
                else:
                    delivery = await self._write(kind, payload, message)
                if self._head is not None:
                    transfer, _ = self._head
                    self._head = None
                    self._hub.left(transfer)
        except PeerError as error:
            self._fail(error)
        if self._channel is Channel.DATA and message is not None:
            self._hub.sent(self._peer, message)
            if delivery is not None:
                self._untimed.put_nowait((message, delivery))

    async def _carry(self, message: Message, lane: Lane) -> float | None:
        """Send a message in datagrams, until enough of it has arrived; how long its link took, if that is known."""
        self._unknown = False
        transfer = Transfer(self._peer, message, self._hub.now)
        self._head = transfer, lane.arrived
        carried = await lane.send(message)
        transfer.loss = carried.loss
        return carried.seconds

    def _probes(self, size: int) -> int:
        """The number of probes that follow a message of so many bytes."""
        return _PROBES if self._unknown and size < PROBE_BYTES else 0

    async def _write(self, kind: Kind, payload: Payload, message: Message | None) -> Delivery:
        """Send a frame, and with it a probe where the link needs one; all but control until it has left."""
        probes = self._probes(payload.length)
        self._unknown = False
        overhead = frame_bytes(payload) - payload.length
        delivery = self._meter.begin(payload.length, overhead + probes * frame_bytes(_PROBE))
        if message is not None:
            meter = self._meter
            self._head = Transfer(self._peer, message, self._hub.now), lambda: meter.delivered(delivery) - overhead
        await self._connection.send(kind, payload, timeout=self._timeout)
        for _ in range(probes):
            await self._connection.send(Kind.PROBE, _PROBE, timeout=self._timeout)
        if self._channel is not Channel.CONTROL:
            await self._connection.all_left(timeout=self._timeout)
        return delivery

    async def _time(self) -> None:
        """Report for each message on the data channel how long its link takes, while those behind it are sent."""
        while True:
            message, delivery = await self._untimed.get()
            try:
                if self._open:
                    if isinstance(delivery, Delivery):
                        delivery = await self._meter.seconds(delivery, timeout=self._timeout)
                    self._hub.timed(self._peer, message, delivery)
            except PeerError as error:
                self._fail(error)

    def _fail(self, error: PeerError) -> None:
        if self._open:
            self.hang_up()
            self._failed(error)
