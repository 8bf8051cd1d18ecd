"""The UDP socket of a node: it listens where the node's TCP connections do, and all its datagrams leave from there."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dlion_sim.errors import InputError

_MOST_AT_ONCE = 64
"""Datagrams read before other tasks run."""
_LONGEST = 2048
"""Bytes; longer datagrams are cut, so that their tag is wrong."""
_RECEIVED_BYTES = 4 * 1024 * 1024
"""The kernel's receive buffer, if it allows as much: the node may be busy with a gradient."""
_UNSENT_BYTES = 16 * 1024
"""The kernel's send buffer: a dozen datagrams. Others wait in the node."""
_ECN_BITS, _CONGESTED = 0x03, 0x03
_TOS = {
    socket.AF_INET: (socket.IPPROTO_IP, socket.IP_TOS, socket.IP_RECVTOS),
    socket.AF_INET6: (socket.IPPROTO_IPV6, socket.IPV6_TCLASS, socket.IPV6_RECVTCLASS),
}
_FRAGMENT = {socket.AF_INET: (socket.IPPROTO_IP, 10), socket.AF_INET6: (socket.IPPROTO_IPV6, 23)}
"""IP_MTU_DISCOVER and IPV6_MTU_DISCOVER: with 0, datagrams too long for a tunnel are fragmented."""
_TIMESTAMP = 35
"""SO_TIMESTAMPNS. The node may read a datagram long after its arrival."""
_TIMESPEC = struct.Struct("@ll")
_ANCILLARY_BYTES = socket.CMSG_SPACE(4) + socket.CMSG_SPACE(_TIMESPEC.size)

UdpAddress = tuple[Any, ...]
"""As `sendto` wants it."""


class DatagramSocket:
    """Sends datagrams, and hands over those that arrive, of any origin. Raises InputError if the address is in use."""

    def __init__(self, listener: socket.socket) -> None:
        address = listener.getsockname()
        self.family = listener.family
        self._socket = socket.socket(listener.family, socket.SOCK_DGRAM)
        self._buffer = bytearray(_LONGEST)
        self._level, self._tos_option, receive_tos = _TOS[self.family]
        self._tos = 0
        try:
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED_BYTES)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNSENT_BYTES)
            self._socket.setsockopt(self._level, receive_tos, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMP, 1)
            self._socket.setsockopt(*_FRAGMENT[self.family], 0)
            self._socket.bind(address)
        except OSError as error:
            self._socket.close()
            where = f"{address[0]}:{address[1]}"
            raise InputError(f"cannot listen there for datagrams: {error.strerror}", file=where) from None

    def begin(self, take: Callable[[memoryview, bool, float], None], taken: Callable[[], None]) -> None:
        """Hand over each datagram, whose memory is used again, whether it has the mark of a congested link, and when it
        came (seconds by the kernel's clock). `taken` is called after some of them.
        """
        view = memoryview(self._buffer)

        def read() -> None:
            for _ in range(_MOST_AT_ONCE):
                try:
                    size, ancillary, _, _ = self._socket.recvmsg_into([self._buffer], _ANCILLARY_BYTES)
                except OSError:  # None is there.
                    break
                marked, at = False, 0.0
                for level, kind, data in ancillary:
                    if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMP):
                        seconds, nanoseconds = _TIMESPEC.unpack(data)
                        at = seconds + nanoseconds * 1e-9
                    else:
                        marked = data[0] & _ECN_BITS == _CONGESTED
                take(view[:size], marked, at)
            taken()

        asyncio.get_running_loop().add_reader(self._socket, read)

    def send(self, datagram: bytes, tos: int, address: UdpAddress) -> bool:
        """Send a datagram with those bits in its IP header; whether there was room for it."""
        try:
            if tos != self._tos:
                self._socket.setsockopt(self._level, self._tos_option, tos)
                self._tos = tos
            self._socket.sendto(datagram, address)
        except BlockingIOError:
            return False
        except OSError:
            pass  # It is lost, as it could be anywhere on its way.
        return True

    def call_when_writable(self, call: Callable[[], None]) -> None:
        """Call once when there is room again."""
        loop = asyncio.get_running_loop()

        def ready() -> None:
            loop.remove_writer(self._socket)
            call()

        loop.add_writer(self._socket, ready)

    def close(self) -> None:
        """Neither send nor receive any more."""
        loop = asyncio.get_running_loop()
        with suppress(ValueError):
            loop.remove_reader(self._socket)
            loop.remove_writer(self._socket)
        self._socket.close()
