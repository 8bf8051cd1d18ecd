"""Sends the datagrams of messages in turn, as fast as their windows and the socket allow."""

from __future__ import annotations

import asyncio
import math
from collections import deque

from dlion_sim.live.datagram_socket import DatagramSocket, UdpAddress
from dlion_sim.live.sending import Sender

_MOST_AT_ONCE = 32
"""Datagrams sent before other tasks run."""


class Pump:
    """Sends the datagrams of all open messages, one of each in turn."""

    def __init__(self, socket: DatagramSocket) -> None:
        self._socket = socket
        self._open: deque[tuple[Sender, UdpAddress]] = deque()
        self._unsent: tuple[bytes, int, UdpAddress] | None = None
        """A datagram for which there was no room yet."""
        self._later: asyncio.Handle | None = None
        """More is sent after other tasks have run."""
        self._alarm: asyncio.TimerHandle | None = None

    def open(self, sender: Sender, address: UdpAddress) -> None:
        """A sender has begun a message, whose datagrams go to that address from the loop's next turn on."""
        self._open.append((sender, address))
        self._soon()

    def close(self, sender: Sender, address: UdpAddress) -> None:
        """The message is over."""
        self._open.remove((sender, address))

    def end(self) -> None:
        """Send nothing more."""
        for handle in (self._later, self._alarm):
            if handle:
                handle.cancel()

    def run(self) -> None:
        """Send what may be sent now."""
        if self._later:
            self._later.cancel()
            self._later = None
        now = asyncio.get_running_loop().time()
        for _ in range(_MOST_AT_ONCE):
            self._unsent = self._unsent or self._next(now)
            if self._unsent is None:
                self._set_alarm()
                return
            if not self._socket.send(*self._unsent):
                self._socket.call_when_writable(self.run)
                return
            self._unsent = None
        self._soon()

    def _soon(self) -> None:
        if self._later is None:
            self._later = asyncio.get_running_loop().call_soon(self.run)

    def _next(self, now: float) -> tuple[bytes, int, UdpAddress] | None:
        for _ in range(len(self._open)):
            sender, address = self._open[0]
            self._open.rotate(-1)
            if (datagram := sender.next(now)) is not None:
                return *datagram, address
        return None

    def _set_alarm(self) -> None:
        """Wake up at the first timeout; an earlier alarm suffices, too."""
        at = min((sender.deadline for sender, _ in self._open), default=math.inf)
        if self._alarm and self._alarm.when() > at:
            self._alarm.cancel()
            self._alarm = None
        if self._alarm is None and at < math.inf:
            self._alarm = asyncio.get_running_loop().call_at(at, self._expire)

    def _expire(self) -> None:
        self._alarm = None
        now = asyncio.get_running_loop().time()
        for sender, _ in self._open:
            sender.expire(now)
        self.run()
