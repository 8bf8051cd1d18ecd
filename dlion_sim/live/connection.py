"""Authenticated connections between nodes, over TCP under asyncio.

Only this module, with `handshake` and `frames`, knows how a connection is secured: for others a `Connection` is a
stream of frames that only the node at its other end can have sent.

Not asyncio's streams: they copy all data through buffers of their own, at more than twice the cost, and cannot report
when the last byte has left.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, Self

import numpy as np

from dlion_sim.errors import InputError
from dlion_sim.live.frames import HEAD_BYTES, Kind, Payload, PeerError, Seal, head, parse_head
from dlion_sim.live.handshake import LARGEST_PAYLOAD, Acceptor, Admission, Connector, Credentials, Ends, Standing

_UNSENT_BYTES = 128 * 1024
"""The most unsent bytes of a connection in the kernel: more would only hide how full the link is."""

WEIGHTS_TOS = 9 << 2
"""Marks packets with weights, so that networks with a queue per flow can tell them from others of the pair.

A DSCP that is not assigned: networks that do not know it treat these packets as any others (RFC 2474).
"""


def tos_of_priority(priority: int) -> int:
    """The TOS byte of packets of a priority from 0, the highest, to 7: a DSCP for local use (RFC 2474), 4 p + 3."""
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
    def parse(cls, text: str) -> Self:
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


class Connection:
    """A connection over a connected socket: from the node that connects, after a handshake, to the other one.

    `socket` is for measurements and for the options of packets.
    """

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        self._sent, self._received = Seal(), Seal()
        self._keyed = Seal()
        """That of the direction in use."""

    @classmethod
    async def connect(
        cls, address: Address, credentials: Credentials, ends: Ends, standing: Standing, *, within: float | None = None
    ) -> tuple[Self, Standing]:
        """A connection to the node at an address, of this `standing`, and that node's standing.

        Raises PeerError if it does not know the secret, OSError if it does not answer `within` so many seconds.
        """
        async with asyncio.timeout(within):
            connection = cls(await connected(address))
        try:
            connector = Connector(credentials, ends, standing)
            proof = connector.proof(await connection._expect(Kind.CHALLENGE))
            await connection.send(Kind.PROOF, Payload((proof,)))
            connection._keyed, theirs = connector.finish(await connection._expect(Kind.WELCOME))
            connection._sent = connection._keyed
            return connection, theirs
        except BaseException:
            connection.close()
            raise

    async def admit(self, credentials: Credentials, receiver: int) -> Admission:
        """Find out which node has connected to this one, the `receiver`.

        Raises PeerError unless it knows the secret.
        """
        acceptor = Acceptor(credentials, receiver)
        await self.send(Kind.CHALLENGE, Payload((acceptor.challenge,)))
        admission = acceptor.admit(await self._expect(Kind.PROOF))
        self._received = self._keyed = admission.seal
        return admission

    async def welcome(self, admission: Admission, standing: Standing) -> None:
        """Tell the admitted node that it may send, and this node's standing."""
        await self.send(Kind.WELCOME, Payload((admission.welcome(standing),)))

    def derived(self, purpose: bytes) -> bytes:
        """A key of 32 bytes that only both ends know, for another purpose than frames."""
        return self._keyed.derived(purpose)

    async def send(self, kind: Kind, payload: Payload, *, timeout: float | None = None) -> None:
        """Send a frame, of which at least a byte must leave every `timeout` seconds. Raises PeerError."""
        first = head(kind, payload, self._sent) + b"".join(payload.buffers[:1])
        *buffers, last = (first, *payload.buffers[1:])
        for buffer in buffers:
            await self._send(memoryview(buffer), timeout, socket.MSG_MORE)  # A short one is no segment of its own.
        await self._send(memoryview(last), timeout)

    async def read(
        self, *, limit: int, timeout: float | None = None, idle: float | None = None
    ) -> tuple[Kind, memoryview]:
        """The next frame's kind and payload, of at most `limit` bytes, in memory of its own. Raises PeerError.

        It must begin within `idle` seconds, and then at least a byte must arrive every `timeout` seconds; None is for
        ever.
        """
        data = bytearray(HEAD_BYTES)
        await self._fill(memoryview(data)[:1], idle)
        await self._fill(memoryview(data)[1:], timeout)
        announced = parse_head(bytes(data), self._received, limit)
        payload = np.empty(announced.length, np.uint8).data
        await self._fill(payload, timeout)
        announced.check(payload)
        return announced.kind, payload

    async def _expect(self, kind: Kind) -> bytes:
        """The payload of the handshake's next frame, which must be of that kind."""
        found, payload = await self.read(limit=LARGEST_PAYLOAD)
        if found is not kind:
            raise PeerError(f"sent a {found.name} out of place")
        return bytes(payload)

    async def all_left(self, *, timeout: float) -> None:
        """Wait until the last byte has left the kernel's buffers for the network. Raises PeerError."""
        option = socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT
        with _errors_of_peer("took nothing for too long"):
            # A socket counts as writable while it holds fewer unsent bytes than this.
            self.socket.setsockopt(*option, 1)
            async with asyncio.timeout(timeout):
                await self._writable()
            self.socket.setsockopt(*option, _UNSENT_BYTES)

    def end(self) -> None:
        """End it in both directions, which its readers and writers notice. Closing it is still the owner's part."""
        with suppress(OSError):  # It may have ended already.
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Release the socket."""
        self.socket.close()

    async def _send(self, view: memoryview, timeout: float | None, flags: int = 0) -> None:
        loop = asyncio.get_running_loop()
        with _errors_of_peer("took nothing for too long"):
            async with asyncio.timeout(timeout) as deadline:
                while view:
                    try:
                        count = self.socket.send(view, flags)
                    except BlockingIOError:
                        await self._writable()
                        continue
                    view = view[count:]
                    if timeout is not None:
                        deadline.reschedule(loop.time() + timeout)

    async def _fill(self, view: memoryview, timeout: float | None) -> None:
        loop = asyncio.get_running_loop()
        with _errors_of_peer("was silent for too long"):
            async with asyncio.timeout(timeout) as deadline:
                while view:
                    count = await loop.sock_recv_into(self.socket, view)
                    if not count:
                        raise PeerClosedError("closed the connection")
                    view = view[count:]
                    if timeout is not None:
                        deadline.reschedule(loop.time() + timeout)

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_writer(self.socket, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_writer(self.socket)


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


@contextmanager
def _errors_of_peer(too_slow: str) -> Iterator[None]:
    """Turn errors in the block into those of the peer; `too_slow` is the one of a timeout."""
    try:
        yield
    except TimeoutError:
        raise PeerError(too_slow) from None
    except OSError as error:
        raise PeerClosedError(f"broke the connection ({error.strerror})") from None
