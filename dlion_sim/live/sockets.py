"""Sockets under asyncio: frames on them, how long they may stand still, and when bytes have really left.

Not asyncio's streams: those copy all that passes through buffers of their own, at more than twice the cost, and cannot
tell when the last byte has left.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import numpy as np

from dlion_sim.errors import InputError
from dlion_sim.live.frames import HEAD_BYTES, Head, Kind, Payload, PeerError, Seal, head, parse_head

_UNSENT_BYTES = 128 * 1024
"""What the kernel may hold of a connection and not have sent: more would only hide how full the link is."""

WEIGHTS_TOS = 9 << 2
"""What marks packets with weights, so that networks with a queue for each flow can tell them from others of the pair.

A DSCP that is not assigned: whoever knows nothing of it treats these packets as any others (RFC 2474).
"""


def tos_of_priority(priority: int) -> int:
    """What marks packets of a priority from 0, the highest, to 7: a DSCP of those for local use (RFC 2474), 4 p + 3."""
    return (4 * priority + 3) << 2


class PeerClosedError(PeerError):
    """The connection has ended."""


class Address(NamedTuple):
    """Where a node listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """An address from "host:port". Raises InputError."""
        host, _, port = text.strip().rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise InputError(f"'{text}' is no address", allowed="host:port, e.g. 10.0.0.1:7000")
        return cls(host.strip("[]"), int(port))


def listen(address: Address) -> socket.socket:
    """A socket that listens there. Raises InputError where that is not possible."""
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server(address, family=family)
    except OSError as error:
        raise InputError(f"cannot listen there: {error.strerror}", file=str(address)) from None


async def connect(address: Address) -> socket.socket:
    """A connection to a node. Raises OSError."""
    loop = asyncio.get_running_loop()
    family, kind, protocol, _, where = (await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM))[0]
    connection = socket.socket(family, kind, protocol)
    try:
        prepare(connection)
        await loop.sock_connect(connection, where)
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(connection: socket.socket) -> None:
    """Set a socket's options: whatever is sent goes out at once, and little piles up in the kernel."""
    connection.setblocking(False)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)


def acknowledge_at_once(connection: socket.socket) -> None:
    """Have what comes acknowledged without delay, so that its sender can time it, if nothing is ever sent back."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def set_apart(connection: socket.socket) -> None:
    """Mark what goes out as weights. Only over IPv4: emulated networks have no other."""
    if connection.family == socket.AF_INET:
        connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, WEIGHTS_TOS)


def end(connection: socket.socket) -> None:
    """End a connection in both directions. Whoever reads or writes it learns of it; closing it stays with its owner."""
    with suppress(OSError):  # It may have ended already.
        connection.shutdown(socket.SHUT_RDWR)


class FrameReader:
    """The frames that come in on a connection.

    `limit` is the most bytes that a payload may have. Within a frame, at least a byte must come every `timeout`
    seconds, and a new frame within `idle` seconds; None is for ever.
    """

    def __init__(
        self,
        connection: socket.socket,
        seal: Seal,
        *,
        limit: int,
        timeout: float | None = None,
        idle: float | None = None,
    ) -> None:
        self._connection = connection
        self._seal = seal
        self._limit = limit
        self._timeout = timeout
        self._idle = idle

    async def read(self) -> tuple[Kind, memoryview]:
        """The next frame's kind and payload, in memory of its own. Raises PeerError."""
        announced = await self._head()
        payload = np.empty(announced.length, np.uint8).data
        await self._fill(payload, self._timeout)
        announced.check(payload)
        return announced.kind, payload

    async def _head(self) -> Head:
        data = bytearray(HEAD_BYTES)
        await self._fill(memoryview(data)[:1], self._idle)
        await self._fill(memoryview(data)[1:], self._timeout)
        return parse_head(bytes(data), self._seal, self._limit)

    async def _fill(self, view: memoryview, timeout: float | None) -> None:
        loop = asyncio.get_running_loop()
        with _told_of_peer("was silent for too long"):
            async with asyncio.timeout(timeout) as deadline:
                while view:
                    count = await loop.sock_recv_into(self._connection, view)
                    if not count:
                        raise PeerClosedError("closed the connection")
                    view = view[count:]
                    if timeout is not None:
                        deadline.reschedule(loop.time() + timeout)


async def send_frame(
    connection: socket.socket, kind: Kind, payload: Payload, seal: Seal, *, timeout: float | None = None
) -> None:
    """Send a frame, of which at least a byte must leave every `timeout` seconds. Raises PeerError."""
    *buffers, last = (head(kind, payload, seal) + b"".join(payload.buffers[:1]), *payload.buffers[1:])
    for buffer in buffers:
        await _send(connection, memoryview(buffer), timeout, socket.MSG_MORE)  # A short one is no segment of its own.
    await _send(connection, memoryview(last), timeout)


async def all_left(connection: socket.socket, *, timeout: float) -> None:
    """Wait until the last byte has left the kernel's buffers for the network. Raises PeerError."""
    option = socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT
    with _told_of_peer("took nothing for too long"):
        # A socket counts as writable while it holds fewer unsent bytes than this.
        connection.setsockopt(*option, 1)
        async with asyncio.timeout(timeout):
            await _writable(connection)
        connection.setsockopt(*option, _UNSENT_BYTES)


async def _send(connection: socket.socket, view: memoryview, timeout: float | None, flags: int = 0) -> None:
    loop = asyncio.get_running_loop()
    with _told_of_peer("took nothing for too long"):
        async with asyncio.timeout(timeout) as deadline:
            while view:
                try:
                    count = connection.send(view, flags)
                except BlockingIOError:
                    await _writable(connection)
                    continue
                view = view[count:]
                if timeout is not None:
                    deadline.reschedule(loop.time() + timeout)


@contextmanager
def _told_of_peer(too_slow: str) -> Iterator[None]:
    """Have what fails in the block be the peer's fault: `too_slow` says which where its time is over."""
    try:
        yield
    except TimeoutError:
        raise PeerError(too_slow) from None
    except OSError as error:
        raise PeerClosedError(f"broke the connection ({error.strerror})") from None


async def _writable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(connection, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(connection)
