"""Connections between nodes: streams of frames, over TLS and TCP.

Only this module, with those below, knows how a connection is secured: for others a `Connection` is a stream of frames
that only the node at its other end can have sent, and only that can read.
"""

from __future__ import annotations

import asyncio
import socket
from typing import NamedTuple, Self

import numpy as np

from dlion_sim.errors import InputError
from dlion_sim.live.frames import HEAD_BYTES, Kind, Payload, PeerError, head, parse_head
from dlion_sim.live.handshake import LARGEST_PAYLOAD, Credentials, Ends, Hello, Standing, Welcome, fresh_key
from dlion_sim.live.identity import Identity
from dlion_sim.live.tls_stream import TlsStream, stream_bytes

WEIGHTS_TOS = 9 << 2
"""Marks packets with weights, so that networks with a queue per flow can tell them from others of the pair.

A DSCP that is not assigned: networks that do not know it treat these packets as any others (RFC 2474).
"""


def tos_of_priority(priority: int) -> int:
    """The TOS byte of packets of a priority from 0, the highest, to 7: a DSCP for local use (RFC 2474), 4 p + 3."""
    return (4 * priority + 3) << 2


class Address(NamedTuple):
    """Where a node listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """An address from "host:port". Raises InputError."""
        host, _, port = text.strip().rpartition(":")
        if not host or not _is_name(host) or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise InputError(f"'{text}' is no address", allowed="host:port, e.g. 10.0.0.1:7000")
        return cls(host.strip("[]"), int(port))


def _is_name(host: str) -> bool:
    """Whether it can be looked up."""
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


def listen(address: Address) -> socket.socket:
    """A socket that listens there. Raises InputError where that is not possible."""
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server(address, family=family)
    except OSError as error:
        raise InputError(f"cannot listen there: {error.strerror}", file=str(address)) from None


class Connection(TlsStream):
    """A connection over a connected socket: from the node that connects, after a handshake, to the other one."""

    def __init__(self, connected: socket.socket, identity: Identity, receiver: int | None = None) -> None:
        super().__init__(connected, identity, receiver)
        self.key = fresh_key()
        """Of the datagrams that this end sends, for the same channel of the pair."""
        self.peer_key = b""
        """Of those that the other end sends; known after the handshake."""

    @classmethod
    async def connect(
        cls, address: Address, credentials: Credentials, ends: Ends, standing: Standing, *, within: float | None = None
    ) -> tuple[Self, Standing]:
        """A connection to the node at an address, of this `standing`, and that node's standing.

        Raises PeerError if that is not the node `ends.receiver` of the run, OSError if it does not answer `within` so
        many seconds.
        """
        async with asyncio.timeout(within):
            connection = cls(await connected(address), credentials.identity, ends.receiver)
        try:
            await connection.shake_hands()
            hello = Hello(credentials.run, ends, standing, connection.key)
            await connection.send(Kind.HELLO, Payload((hello.pack(),)))
            welcome = Welcome.unpack(await connection._expect(Kind.WELCOME))
            connection.peer_key = welcome.key
            return connection, welcome.standing
        except BaseException:
            connection.close()
            raise

    async def admit(self, run: bytes, receiver: int) -> tuple[Ends, Standing]:
        """Find out which node has connected to this one, the `receiver`, and its standing.

        Raises PeerError unless it is a node of the run, and the one that it says.
        """
        await self.shake_hands()
        hello = Hello.unpack(await self._expect(Kind.HELLO), run, receiver)
        self.check_is(hello.ends.sender)
        self.peer_key = hello.key
        return hello.ends, hello.standing

    async def welcome(self, standing: Standing) -> None:
        """Tell the admitted node that it may send, and this node's standing."""
        await self.send(Kind.WELCOME, Payload((Welcome(standing, self.key).pack(),)))

    async def send(self, kind: Kind, payload: Payload, *, timeout: float | None = None) -> None:
        """Send a frame, of which at least a byte must leave every `timeout` seconds. Raises PeerError."""
        first, *others = payload.buffers or (b"",)
        await self.write((head(kind, payload.length) + bytes(first), *others), timeout)

    async def read(
        self, *, limit: int, timeout: float | None = None, idle: float | None = None
    ) -> tuple[Kind, memoryview]:
        """The next frame's kind and payload, of at most `limit` bytes, in memory of its own. Raises PeerError.

        It must begin within `idle` seconds, and then at least a byte must arrive every `timeout` seconds; None is for
        ever.
        """
        data = bytearray(HEAD_BYTES)
        await self.fill(memoryview(data)[:1], idle)
        await self.fill(memoryview(data)[1:], timeout)
        kind, length = parse_head(data, limit)
        payload = np.empty(length, np.uint8).data
        await self.fill(payload, timeout)
        return kind, payload

    async def _expect(self, kind: Kind) -> bytes:
        """The payload of the handshake's next frame, which must be of that kind."""
        found, payload = await self.read(limit=LARGEST_PAYLOAD)
        if found is not kind:
            raise PeerError(f"sent a {found.name} out of place")
        return bytes(payload)


def frame_bytes(payload: Payload) -> int:
    """The bytes of TCP's stream that a frame takes."""
    first, *others = map(len, payload.buffers or (b"",))
    return stream_bytes((HEAD_BYTES + first, *others))


async def connected(address: Address) -> socket.socket:
    """A socket that is connected to an address. Raises OSError."""
    loop = asyncio.get_running_loop()
    family, kind, protocol, _, where = (await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM))[0]
    connection = socket.socket(family, kind, protocol)
    try:
        connection.setblocking(False)
        await loop.sock_connect(connection, where)
    except BaseException:
        connection.close()
        raise
    return connection
