"""What waits to be sent on one connection, and is sent in order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from dlion_sim.live.delivery import Delivery, Meter
from dlion_sim.live.frames import HEAD_BYTES, Kind, Payload, PeerError
from dlion_sim.live.handshake import Channel
from dlion_sim.live.meeting import Connection
from dlion_sim.live.sockets import all_left, end, send_frame
from dlion_sim.protocol.messages import Message

_PROBE, _PROBES = Payload((bytes(8192),)), 4
"""What goes with a link's first message if that is shorter, whose own time would mostly be a round trip."""

Left = Callable[[Message], None]
"""Called with a message whose last byte has left this machine."""
Sent = Callable[[Message, float, float], None]
"""Called with a bulk message, the seconds that its link took for it, and for how many it has left already: until it is
known to have come through. Without any if it never will."""


class Outbox:
    """The sending end of a connection. `failed` is told, once, why it can't send any more."""

    def __init__(
        self,
        connection: Connection,
        channel: Channel,
        *,
        patience: float,
        left: Left,
        sent: Sent,
        failed: Callable[[PeerError], None],
    ) -> None:
        self._socket, self._seal = connection
        self._bulk = channel is Channel.BULK
        self._patience = patience
        self._left = left
        self._sent = sent
        self._failed = failed
        self._queue: asyncio.Queue[tuple[Kind, Payload, Message | None]] = asyncio.Queue()
        self._leaving: asyncio.Queue[tuple[Message, Delivery | None, float]] = asyncio.Queue()
        """What has left, and when."""
        self._meter = Meter(self._socket)
        self._open = True
        self._unknown = self._bulk
        """Whether nothing has told yet what the link can carry. Of control it need not be known."""

    def put(self, kind: Kind, payload: Payload, message: Message | None = None) -> None:
        """Queue a frame; `message` is the one that it carries, if any."""
        self._queue.put_nowait((kind, payload, message))

    async def run(self) -> None:
        """Send what is queued, for ever. After the connection's end all is dropped: nobody has to wait for it."""
        with self._socket:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._confirm())
                while True:
                    kind, payload, message = await self._queue.get()
                    await self._send(kind, payload, message)
                    self._queue.task_done()

    async def flush(self) -> None:
        """Wait until all that is queued has left or was dropped."""
        await self._queue.join()

    def hang_up(self) -> None:
        """End the connection."""
        self._open = False
        end(self._socket)

    async def _send(self, kind: Kind, payload: Payload, message: Message | None) -> None:
        delivery = None
        try:
            if self._open:
                delivery = await self._write(kind, payload)
                if message is not None:
                    self._left(message)
        except PeerError as error:
            self._fail(error)
        if self._bulk and message is not None:
            self._leaving.put_nowait((message, delivery, time.monotonic()))

    async def _write(self, kind: Kind, payload: Payload) -> Delivery:
        """Send a frame, and with it a probe where the link needs one; a bulk frame until it has left."""
        probes = _PROBES if self._unknown and payload.length < _PROBES * _PROBE.length else 0
        self._unknown = False
        delivery = self._meter.begin(_on_the_wire(payload), probes * _on_the_wire(_PROBE))
        await send_frame(self._socket, kind, payload, self._seal, patience=self._patience)
        for _ in range(probes):
            await send_frame(self._socket, Kind.PROBE, _PROBE, self._seal, patience=self._patience)
        if self._bulk:
            await all_left(self._socket, patience=self._patience)
        return delivery

    async def _confirm(self) -> None:
        """Tell of each bulk message how long its link takes, while those behind it are sent."""
        while True:
            message, delivery, left = await self._leaving.get()
            seconds = 0.0
            try:
                if delivery is not None and self._open:
                    seconds = await self._meter.seconds(delivery, patience=self._patience)
            except PeerError as error:
                self._fail(error)
            self._sent(message, seconds, time.monotonic() - left)

    def _fail(self, error: PeerError) -> None:
        if self._open:
            self.hang_up()
            self._failed(error)


def _on_the_wire(payload: Payload) -> int:
    return HEAD_BYTES + payload.length
