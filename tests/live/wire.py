"""What somebody between two nodes sees and can do."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from dlion_sim.live.connection import Address, Connection


@dataclass
class Wire:
    """A relay to a node at `address`, and what went over each connection from and to those that connected."""

    address: Address
    sent: list[bytearray] = field(default_factory=list)
    answered: list[bytearray] = field(default_factory=list)


@asynccontextmanager
async def relay_to(address: Address) -> AsyncIterator[Wire]:
    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: bytearray) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                seen += data
                writer.write(data)
                await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(*address)
        sent, answered = bytearray(), bytearray()
        wire.sent.append(sent)
        wire.answered.append(answered)
        await asyncio.gather(carry(reader, there[1], sent), carry(there[0], writer, answered))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    wire = Wire(Address(*server.sockets[0].getsockname()))
    try:
        yield wire
    finally:
        server.close()


def arrived_at(connection: Connection) -> bytes:
    """The records that have arrived and that it has not read, which it will not read."""
    return os.read(connection.socket.fileno(), 1 << 20)


def send_raw(connection: Connection, data: bytes) -> None:
    """Send it as it is, without TLS."""
    assert os.write(connection.socket.fileno(), data) == len(data)


def record_of(connection: Connection, data: bytes) -> bytes:
    """What it would send for that, without sending it."""
    descriptor = connection.socket.fileno()
    real = os.dup(descriptor)
    here, there = socket.socketpair()
    with here, there:
        os.dup2(there.fileno(), descriptor)
        connection.socket.send(data)
        os.dup2(real, descriptor)
        os.close(real)
        return here.recv(1 << 20)
