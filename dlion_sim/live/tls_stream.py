"""A stream of bytes over TLS 1.3 and TCP, under asyncio.

Not asyncio's streams: they copy all data through further buffers, and cannot report when the last byte has left. A
connection that ends without a farewell of TLS is no error here: frames tell whether it may end.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from dlion_sim.live.frames import PeerError
from dlion_sim.live.identity import Identity, check_is
from dlion_sim.protocol.messages import Buffer

_UNSENT_BYTES = 128 * 1024
"""The most unsent bytes of a connection in the kernel: more would only hide how full the link is."""
_RECORD_BYTES = 2**14
"""The most that TLS puts into a record."""
_RECORD_OVERHEAD = 22
"""A record's header, type and tag, in bytes (RFC 8446, 5.2)."""
_SHORT = 128 * 1024
"""Bytes; the buffers of shorter writes are joined, so that they take few records and packets."""


class PeerClosedError(PeerError):
    """The connection has ended."""


def stream_bytes(lengths: Iterable[int]) -> int:
    """The bytes of TCP's stream that a write of buffers of these lengths takes."""
    lengths = list(lengths)
    pieces = [sum(lengths)] if _is_short(lengths) else lengths
    return sum(length + _RECORD_OVERHEAD * -(-length // _RECORD_BYTES) for length in pieces)


def _is_short(lengths: Iterable[int]) -> bool:
    """Whether a write joins its buffers of these lengths."""
    return sum(lengths) < _SHORT


class TlsStream:
    """A stream over a connected socket, with the node `receiver`, or without one with the node that has connected.

    `socket` is for measurements and for the options of packets.
    """

    def __init__(self, connected: socket.socket, identity: Identity, receiver: int | None = None) -> None:
        self.socket = connected
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        self._identity = identity
        self._receiver = receiver
        self._tls: ssl.SSLSocket
        """The same socket, once its handshake has begun."""

    async def shake_hands(self) -> None:
        """Find out whether the other end is a node of the CA. Raises PeerError."""
        with _errors_of_peer("was silent for too long"):
            self.socket = self._tls = self._identity.wrap(self.socket, self._receiver)
            while True:
                try:
                    self._tls.do_handshake()
                    return
                except ssl.SSLWantReadError:
                    await self._readable()
                except ssl.SSLWantWriteError:
                    await self._writable()

    def check_is(self, rank: int) -> None:
        """Raise PeerError unless that node is at the other end."""
        check_is(rank, self._tls.getpeercert())

    async def write(self, buffers: Iterable[Buffer], timeout: float | None) -> None:
        """Send the buffers, of which at least a byte must leave every `timeout` seconds. Raises PeerError."""
        buffers = list(buffers)
        if _is_short(map(len, buffers)):
            buffers = [b"".join(buffers)]
        with _errors_of_peer("took nothing for too long"):
            for buffer in buffers:
                view = memoryview(buffer)
                while view:
                    try:
                        view = view[self._tls.send(view) :]
                    except ssl.SSLWantWriteError:
                        async with asyncio.timeout(timeout):
                            await self._writable()

    async def fill(self, view: memoryview, timeout: float | None) -> None:
        """Receive as many bytes, of which at least one must arrive every `timeout` seconds. Raises PeerError."""
        with _errors_of_peer("was silent for too long"):
            while view:
                try:
                    count = self._tls.recv_into(view)  # at most a record
                except ssl.SSLWantReadError:
                    async with asyncio.timeout(timeout):
                        await self._readable()
                    continue
                if not count:
                    raise PeerClosedError("closed the connection")
                view = view[count:]

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
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)  # that of ssl.SSLSocket would go on without TLS

    def close(self) -> None:
        """Release the socket."""
        self.socket.close()

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        await _ready(self.socket, loop.add_reader, loop.remove_reader)

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        await _ready(self.socket, loop.add_writer, loop.remove_writer)


async def _ready(of: socket.socket, add: Callable[..., None], remove: Callable[..., object]) -> None:
    """Wait until a socket, which nobody closes meanwhile, is readable or writable, as the loop's methods are for."""
    # By number: for a socket that it does not know yet, the loop's selector would ask for its addresses.
    ready, descriptor = asyncio.Event(), of.fileno()
    add(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        remove(descriptor)


def _reason(error: ssl.SSLError) -> str:
    """What a peer has done, by an error of TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"has no certificate of the run: {error.verify_message}"
    reason = (error.reason or "unknown error").lower().replace("_", " ")
    return f"refused the connection ({reason})" if "alert" in reason else f"speaks no TLS of this run ({reason})"


@contextmanager
def _errors_of_peer(too_slow: str) -> Iterator[None]:
    """Turn errors in the block into those of the peer; `too_slow` is the one of a timeout."""
    try:
        yield
    except TimeoutError:
        raise PeerError(too_slow) from None
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
        raise PeerClosedError("closed the connection") from None
    except ssl.SSLError as error:
        raise PeerError(_reason(error)) from None
    except OSError as error:
        raise PeerClosedError(f"broke the connection ({error.strerror})") from None
