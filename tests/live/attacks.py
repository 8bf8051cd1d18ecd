"""Whoever has not the key, or has it and says what makes no sense."""

import asyncio
import random
import socket
import ssl
import struct
from contextlib import suppress
from datetime import timedelta

import pytest

from dlion_sim.bounded_loss.cutting import PAYLOAD
from dlion_sim.live import certificates
from dlion_sim.live.certificates import name_of
from dlion_sim.live.connection import Address, Connection, connected
from dlion_sim.live.datagram_socket import DatagramSocket
from dlion_sim.live.datagrams import Key, Packet, Sort
from dlion_sim.live.frames import Kind, Payload, PeerError, head
from dlion_sim.live.handshake import LARGEST_PAYLOAD, Credentials, Ends
from dlion_sim.live.identity import Identity
from dlion_sim.protocol.messages import Channel
from tests.live.mesh import RUN, SECRET, STANDING, identity_of

ENDS = Ends(1, 0, Channel.DATA)
ANOTHER_SECRET = b"another secret.."
_AT_ONCE = 100
"""Connections; more would wait in the kernel for longer than it lets them."""


def careless(identity: Identity) -> Identity:
    """One that connects to anybody."""
    identity.client.check_hostname = False
    identity.client.verify_mode = ssl.CERT_NONE
    return identity


def expired() -> Identity:
    """A node's, whose certificate was valid until an hour ago."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "_AFTER", timedelta(hours=-1))
        return careless(Identity.of_secret(SECRET, 1))


async def pester(address: Address, data: bytes) -> bytes:
    """Connect, send, and return what comes until the other side hangs up, or nothing comes any more."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(data)
        writer.write_eof()
        return await reader.read()
    except OSError:
        return b""
    finally:
        writer.close()


def client_hello() -> bytes:
    """What a node begins with."""
    sent = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        identity_of(1).client.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name_of(0)).do_handshake()
    return sent.read()


CLIENT_HELLO = client_hello()


async def drip(address: Address) -> None:
    """Begin TLS, a byte at a time, for at least half a minute."""
    stranger = await connected(address)
    with stranger, suppress(ConnectionError):
        for byte in CLIENT_HELLO:
            await asyncio.get_running_loop().sock_sendall(stranger, bytes([byte]))
            await asyncio.sleep(30 / len(CLIENT_HELLO))


class Strangers:
    """Those who connect to a node and have no business there, each in one of these ways."""

    def __init__(self, victim: Address) -> None:
        self._victim = victim
        self._rng = random.Random(1)
        self._another_ca = careless(Identity.of_secret(ANOTHER_SECRET, 1))
        self._expired = expired()
        self._older = careless(Identity.of_secret(SECRET, 1))
        self._older.client.minimum_version = ssl.TLSVersion.TLSv1_2
        self._older.client.maximum_version = ssl.TLSVersion.TLSv1_2

    async def come(self, counts: dict[str, int]) -> None:
        """So many in each way, in any order; each is turned away."""
        ways = [way for way, count in counts.items() for _ in range(count)]
        self._rng.shuffle(ways)
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(way: str) -> None:
            async with slots:
                await getattr(self, way)()

        await asyncio.gather(*map(one, ways))

    async def plain(self) -> None:
        """No TLS, or a part of it."""
        rng = self._rng
        noise = rng.randbytes(rng.randrange(1, 2000))
        frame = head(rng.choice(list(Kind)), len(noise)) + noise
        data = rng.choice([noise, frame, b"GET / HTTP/1.1\r\n\r\n", CLIENT_HELLO[: rng.randrange(1, 500)]])
        assert len(await pester(self._victim, data)) < 2000  # an alert

    async def another_ca(self) -> None:
        await self._is_refused(self._another_ca)

    async def an_expired_certificate(self) -> None:
        await self._is_refused(self._expired)

    async def an_older_tls(self) -> None:
        """One that has renegotiation."""
        await self._is_refused(self._older)

    async def nonsense(self) -> None:
        """By a node of the CA."""
        rng = self._rng
        node = Connection(await connected(self._victim), identity_of(1), 0)
        await node.shake_hands()
        kind, payload = rng.choice(list(Kind)), rng.randbytes(rng.randrange(LARGEST_PAYLOAD + 100))
        with suppress(PeerError):
            if rng.random() < 0.5:
                await node.send(kind, Payload((payload,)))
            else:
                await node.write((head(Kind.HELLO, rng.randrange(LARGEST_PAYLOAD, 2**32)),), None)
        with pytest.raises(PeerError, match="the connection"):
            await node.read(limit=LARGEST_PAYLOAD)
        node.close()

    async def slowness(self) -> None:
        await drip(self._victim)

    async def _is_refused(self, identity: Identity) -> None:
        with pytest.raises(PeerError):
            await Connection.connect(self._victim, Credentials(identity, RUN), ENDS, STANDING)


class Forger:
    """A stranger who sees what goes to one node, and sends it more of that kind."""

    def __init__(self, monkeypatch) -> None:
        self.rng = random.Random(1)
        self.seen: list[bytes] = []
        self.sent = 0
        self._victim = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        send = DatagramSocket.send

        def overheard(datagrams, data, tos, address):
            self._victim = self._victim or address
            if address == self._victim:
                self.seen.append(data)
            return send(datagrams, data, tos, address)

        monkeypatch.setattr(DatagramSocket, "send", overheard)

    def datagram(self) -> bytes:
        rng, real = self.rng, self.rng.choice(self.seen)
        match rng.randrange(8):
            case 0:
                return rng.randbytes(rng.randrange(2000))
            case 1:
                return real[: rng.randrange(len(real))]
            case 2:  # again
                return real
            case 3:
                damaged = bytearray(real)
                bit = rng.randrange(8 * len(real))
                damaged[bit // 8] ^= 1 << bit % 8
                return bytes(damaged)
            case 4:  # a header as it should be, and a tag made up
                return real[:-16] + rng.randbytes(16)
            case 5:  # of another session
                header = Packet(Channel.DATA, 1, rng.randrange(10), rng.randrange(60), rng.randrange(60), 0.0).header()
                return Key(Sort.PACKET, bytes(32)).seal(header, (rng.randbytes(PAYLOAD),))
            case 6:  # longer than any
                return real + rng.randbytes(rng.randrange(60_000))
            case _:  # of a message that nobody has announced
                return real[:12] + struct.pack("<I", rng.randrange(2**32)) + real[16:]

    def send(self, count):
        for _ in range(count if self.seen else 0):
            self._socket.sendto(self.datagram(), self._victim)
            self.sent += 1

    def is_of(self, node) -> bool:
        """Whether that is the victim."""
        return node._datagrams.socket._socket.getsockname() == self._victim
