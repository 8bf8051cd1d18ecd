"""What waits to be sent on one channel, and is sent in order: in frames, or some messages in datagrams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from dlion_sim.assembly import Transfer
from dlion_sim.assembly.transfer import PROBE_BYTES
from dlion_sim.live.frames import HEAD_BYTES, Kind, Payload, PeerError
from dlion_sim.live.link_timing import Delivery, Meter
from dlion_sim.live.pair import Connection
from dlion_sim.live.sending import Carried
from dlion_sim.live.sockets import all_left, end, send_frame, set_apart
from dlion_sim.protocol.messages import Channel, Message

_PROBES = 4
_PROBE = Payload((bytes(PROBE_BYTES // _PROBES),))

Elimination = Callable[[Transfer], None]
"""Called with a message whose last byte has left this machine."""
Sent = Callable[[Message], None]
"""Called with a message on the data channel that has left, or never will."""
Timed = Callable[[Message, float], None]
"""Called with a message on the data channel that has left, once it is known for how many seconds its link took it."""


class Datagrams(Protocol):
    """Carries a channel's messages, one at a time, that may lose a part."""

    def takes(self, message: Message) -> bool:
        """Whether the message is one of them."""

    async def send(self, message: Message) -> Carried:
        """Send it, and return what became of it. Raises PeerError."""

    def arrived(self) -> float:
        """Bytes of it that have arrived so far."""


class Outbox:
    """The sending end of a channel. `now` is the run's clock; `failed` is told, once, why it can't send any more."""

    def __init__(
        self,
        connection: Connection,
        peer: int,
        channel: Channel,
        *,
        now: Callable[[], float],
        timeout: float,
        left: Elimination,
        sent: Sent,
        timed: Timed,
        failed: Callable[[PeerError], None],
        datagrams: Datagrams | None = None,
    ) -> None:
        self._socket, self._seal = connection
        self._peer = peer
        self._channel = channel
        self._now = now
        self._timeout = timeout
        self._left = left
        self._sent = sent
        self._timed = timed
        self._failed = failed
        self._datagrams = datagrams
        self._queue: asyncio.Queue[tuple[Kind, Payload, Message | None]] = asyncio.Queue()
        self._untimed: asyncio.Queue[tuple[Message, Delivery | float]] = asyncio.Queue()
        """What has left, and how long its link took for it if that is known."""
        self._meter = Meter(self._socket)
        self._head: tuple[Transfer, Callable[[], float]] | None = None
        """The message that has begun to leave, and not left whole; and what tells how much of it has arrived."""
        self._open = True
        self._unknown = channel is Channel.DATA
        """Whether nothing has told yet what the link can carry. For the other channels it need not be known."""
        if channel is Channel.WEIGHTS:
            set_apart(self._socket)

    def put(self, kind: Kind, payload: Payload, message: Message | None = None) -> None:
        """Queue a frame; `message` is the one that it carries, if any."""
        self._queue.put_nowait((kind, payload, message))

    async def run(self) -> None:
        """Send what is queued, for ever. After the connection's end all is dropped: nobody has to wait for it."""
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
        """The message that has begun to leave and not left whole, if any, and how many of its bytes have arrived."""
        if self._head is not None:
            transfer, arrived = self._head
            yield transfer, arrived() if self._open else transfer.counted

    def hang_up(self) -> None:
        """End the connection."""
        self._open = False
        end(self._socket)

    async def _send(self, kind: Kind, payload: Payload, message: Message | None) -> None:
        delivery: Delivery | float | None = None
        try:
            if self._open:
                # A link's first message goes by TCP if it is short, for the probe's sake.
                if message and self._datagrams and self._datagrams.takes(message) and not self._probes(message.size):
                    delivery = await self._carry(message, self._datagrams)
                else:
                    delivery = await self._write(kind, payload, message)
                if self._head is not None:
                    transfer, _ = self._head
                    self._head = None
                    self._left(transfer)
        except PeerError as error:
            self._fail(error)
        if self._channel is Channel.DATA and message is not None:
            self._sent(message)
            if delivery is not None:
                self._untimed.put_nowait((message, delivery))

    async def _carry(self, message: Message, datagrams: Datagrams) -> float | None:
        """Send a message in datagrams, until enough of it has arrived; how long its link took, if that can be told."""
        self._unknown = False
        transfer = Transfer(self._peer, message, self._now())
        self._head = transfer, datagrams.arrived
        carried = await datagrams.send(message)
        transfer.loss = carried.loss
        return carried.seconds

    def _probes(self, size: int) -> int:
        """How many probes go with a message of so many bytes."""
        return _PROBES if self._unknown and size < PROBE_BYTES else 0

    async def _write(self, kind: Kind, payload: Payload, message: Message | None) -> Delivery:
        """Send a frame, and with it a probe where the link needs one; all but control until it has left."""
        probes = self._probes(payload.length)
        self._unknown = False
        delivery = self._meter.begin(_on_the_wire(payload), probes * _on_the_wire(_PROBE))
        if message is not None:
            meter = self._meter
            self._head = Transfer(self._peer, message, self._now()), lambda: meter.delivered(delivery) - HEAD_BYTES
        await send_frame(self._socket, kind, payload, self._seal, timeout=self._timeout)
        for _ in range(probes):
            await send_frame(self._socket, Kind.PROBE, _PROBE, self._seal, timeout=self._timeout)
        if self._channel is not Channel.CONTROL:
            await all_left(self._socket, timeout=self._timeout)
        return delivery

    async def _time(self) -> None:
        """Tell of each message on the data channel how long its link takes, while those behind it are sent."""
        while True:
            message, delivery = await self._untimed.get()
            try:
                if self._open:
                    if isinstance(delivery, Delivery):
                        delivery = await self._meter.seconds(delivery, timeout=self._timeout)
                    self._timed(message, delivery)
            except PeerError as error:
                self._fail(error)

    def _fail(self, error: PeerError) -> None:
        if self._open:
            self.hang_up()
            self._failed(error)


def _on_the_wire(payload: Payload) -> int:
    return HEAD_BYTES + payload.length
