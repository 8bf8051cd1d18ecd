"""The time that a link takes for messages, by TCP's acknowledgements.

When a message has left this machine, its last part may still wait in a queue, for tens of milliseconds, before the
bottleneck.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios
import time
from dataclasses import dataclass
from typing import NamedTuple

from dlion_sim.live.frames import PeerError
from dlion_sim.scenario.network import SEGMENT

_ENOUGH = 0.95
"""The part of a message that is measured; the rest is as fast."""
_LEAST_WAIT, _LONGEST_WAIT = 0.001, 0.003
_TCP_INFO = struct.Struct("<56xI60xQ20xI")
"""Of Linux' `struct tcp_info`: tcpi_last_ack_recv (milliseconds ago), tcpi_bytes_acked, tcpi_min_rtt (microseconds)."""
_COUNTS = struct.Struct("<120xQ12xI8xI")
"""Of the same: tcpi_bytes_acked, tcpi_segs_in, tcpi_data_segs_in."""
_TICK = 0.004
"""The kernel's resolution of the time of the last acknowledgement (s)."""


class Acknowledged(NamedTuple):
    """TCP's state of a connection."""

    size: int
    """Bytes that have been acknowledged."""
    at: float
    """The latest time at which the last of them can have been; on a busy machine long before it is read."""
    round_trip: float
    """The shortest time of an acknowledgement so far (s)."""


@dataclass(frozen=True)
class Delivery:
    """A message on its way: `size` bytes from a `position` in the connection's stream on, `own` ones its own."""

    position: int
    size: int
    own: int
    began: float


class Meter:
    """Measures a connection's deliveries, one after another."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        (under_way,) = struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))
        self._position = self._acknowledged().size + under_way
        """Of the next byte that is sent."""
        self._all_delivered = 0.0
        """When the previous message was delivered."""

    def begin(self, own: int, extra: int = 0) -> Delivery:
        """Call before each message is sent; with its `own` bytes nothing is but `extra` ones around it.

        It is attributed its part of the time that all take, lest the rate of a link be too low by short messages.
        """
        delivery = Delivery(self._position, own + extra, own, time.monotonic())
        self._position += delivery.size
        return delivery

    def delivered(self, delivery: Delivery) -> int:
        """How many of a delivery's bytes are known to have arrived, or more if others followed."""
        return max(0, self._acknowledged().size - delivery.position)

    async def seconds(self, delivery: Delivery, *, timeout: float) -> float:
        """The time that the link takes for the message, as soon as it is known. Call in the messages' order.

        Raises PeerError if for `timeout` seconds nothing more is acknowledged.
        """
        seconds = await self._seconds(delivery, timeout)
        return seconds * delivery.own / delivery.size

    async def _seconds(self, delivery: Delivery, timeout: float) -> float:
        """For the message and all that is sent with it."""
        since = max(delivery.began, self._all_delivered)
        known, changed = 0, time.monotonic()
        first: tuple[int, float] | None = None
        while True:
            acknowledged = self._acknowledged()
            now = acknowledged.at
            delivered = min(acknowledged.size - delivery.position, delivery.size)
            elapsed = max(0.0, now - since)
            if delivered >= _ENOUGH * delivery.size:
                if first is not None and delivered - first[0] >= delivery.size / 2:
                    # From one acknowledgement to another, so that it does not matter how late they come.
                    seconds = (now - first[1]) * delivery.size / (delivered - first[0])
                else:
                    # After a pause acknowledgements come a round trip later. What takes no longer than that tells
                    # little; rather than too fast, its link counts as slow.
                    pause = max(0.0, delivery.began + acknowledged.round_trip - since)
                    seconds = max(elapsed - pause, elapsed / 2) * delivery.size / delivered
                self._all_delivered = now + seconds * (1 - delivered / delivery.size)
                return seconds
            if first is None and delivered > 0:
                first = delivered, now
            if delivered > known:
                known, changed = delivered, now
            elif time.monotonic() - changed > timeout:
                raise PeerError("took nothing for too long")
            left = (delivery.size - delivered) * elapsed / delivered if delivered > 0 else 0.0
            await asyncio.sleep(min(max(_LEAST_WAIT, left / 2), _LONGEST_WAIT))

    def _acknowledged(self) -> Acknowledged:
        return _acknowledged(self._connection)


def least_round_trip(connection: socket.socket) -> float:
    """The shortest time that acknowledgements have taken so far, in seconds."""
    return _acknowledged(connection).round_trip


def acknowledgements_a_frame(connection: socket.socket) -> float:
    """Acknowledgements that came without data, for each full frame's worth of bytes that were acknowledged."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _COUNTS.size)
    size, segments, with_data = _COUNTS.unpack(info)
    return float((segments - with_data) * SEGMENT / max(size, SEGMENT))


def _acknowledged(connection: socket.socket) -> Acknowledged:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    ago, size, microseconds = _TCP_INFO.unpack(info)
    return Acknowledged(size, time.monotonic() - max(0.0, ago / 1e3 - _TICK), microseconds / 1e6)
