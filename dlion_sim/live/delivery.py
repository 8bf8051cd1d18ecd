"""How long a link takes for a message, by what TCP has of it acknowledged.

When a message has left this machine, its last part may still wait in a queue on the way: milliseconds' worth, which is
a good part of a short message's time, and the queue's end may be the link that counts. Only acknowledgements tell.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios
import time

from dlion_sim.live.frames import PeerError

_TELLING_SHARE = 0.5
"""Of a message, what must be acknowledged for its pace to be the link's."""
_POLL_SECONDS = 0.001
_INFO_BYTES = 160
_LEAST_ROUND_TRIP = struct.Struct("<I"), 148
"""In Linux' `struct tcp_info` (tcpi_min_rtt, microseconds)."""


class Delivery:
    """The delivery of the `size` bytes that are given to a connection from now on."""

    def __init__(self, connection: socket.socket, size: int) -> None:
        self._connection = connection
        self._size = size
        self._before = _unacknowledged(connection)
        self._began = time.monotonic()

    async def seconds(self, *, patience: float) -> float:
        """How long it all takes, as soon as that is known; to be asked when the last byte has left this machine.

        Raises PeerError if for `patience` seconds nothing was acknowledged that would tell.
        """
        deadline = time.monotonic() + patience
        while True:
            now = time.monotonic()
            delivered = self._before + self._size - _unacknowledged(self._connection)
            if delivered >= _TELLING_SHARE * self._size:
                elapsed = now - self._began
                # On an idle connection acknowledgements begin a round trip later, and then come as fast as bytes leave.
                # Messages that take no longer than that tell little; rather than too fast, their link counts as slow.
                idle = 0.0 if self._before else min(_least_round_trip(self._connection), elapsed / 2)
                return (elapsed - idle) * self._size / delivered
            if now > deadline:
                raise PeerError("took nothing for too long")
            await asyncio.sleep(_POLL_SECONDS)


def _unacknowledged(connection: socket.socket) -> int:
    """Bytes that were given to a connection and that its other end has not acknowledged."""
    (count,) = struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, b"\0" * 4))
    return int(count)


def _least_round_trip(connection: socket.socket) -> float:
    """The shortest time (seconds) that an acknowledgement has taken."""
    layout, offset = _LEAST_ROUND_TRIP
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    (microseconds,) = layout.unpack_from(info, offset)
    return float(microseconds) / 1e6
