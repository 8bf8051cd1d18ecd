"""Nodes' links in one event loop, and a puppet that knows the secret but does with its connections as it is told."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache

from dlion_sim.assembly import Transfer
from dlion_sim.errors import InputError
from dlion_sim.learning.flat import Layout
from dlion_sim.live.bounded_loss import BoundedLoss
from dlion_sim.live.connection import Address, Connection, listen
from dlion_sim.live.datagram_socket import DatagramSocket
from dlion_sim.live.frames import Kind, Payload
from dlion_sim.live.handshake import Credentials, Ends, Standing
from dlion_sim.live.identity import Identity
from dlion_sim.live.mesh import Mesh
from dlion_sim.live.node_config import Timeouts
from dlion_sim.live.pair import Connections
from dlion_sim.live.rendezvous import Rendezvous
from dlion_sim.live.session import Terms
from dlion_sim.protocol.messages import Channel, Contribution, MalformedMessageError, Message

SECRET, RUN = b"the run's secret", b"r" * 32
STANDING = Standing(b"process.")
P = 50
QUICK = Timeouts(start=60, handshake=20, silence=60)


@cache
def identity_of(rank: int, secret: bytes = SECRET) -> Identity:
    return Identity.of_secret(secret, rank)


def credentials_of(rank: int, secret: bytes = SECRET, run: bytes = RUN) -> Credentials:
    return Credentials(identity_of(rank, secret), run)


class Inbox:
    """A hub that keeps all it is told."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.departed: list[tuple[int, Message]] = []
        self.transfers: list[Transfer] = []
        self.sendings: list[tuple[int, Message]] = []
        self.timings: list[tuple[int, Message, float]] = []
        self.news: list[tuple[Kind, int]] = []
        self.losses: dict[int, str] = {}

    @property
    def now(self) -> float:
        return time.monotonic()

    def arrived(self, message):
        assert message.sender not in self.losses, "nothing comes from who is lost"
        if isinstance(message.body, Contribution) and message.body.iteration >= 2**40:
            raise MalformedMessageError("it makes no sense")
        self.messages.append(message)

    def left(self, transfer):
        self.departed.append((transfer.receiver, transfer.message))
        self.transfers.append(transfer)

    def sent(self, peer, message):
        self.sendings.append((peer, message))

    def timed(self, peer, message, seconds):
        self.timings.append((peer, message, seconds))

    def heard(self, kind, rank):
        self.news.append((kind, rank))

    def lost(self, peer, reason):
        self.losses[peer] = reason


def listeners(count: int) -> tuple[list[socket.socket], list[Address]]:
    """Below the ports that the system gives to connections, so that each stays free for whoever listens there again."""
    sockets: list[socket.socket] = []
    for port in random.SystemRandom().sample(range(10_000, 32_000), 100):
        with suppress(InputError):  # Somebody listens there.
            sockets.append(listen(Address("127.0.0.1", port)))
        if len(sockets) == count:
            break
    return sockets, [Address(*each.getsockname()) for each in sockets]


def rendezvous_of(rank, addresses, listener, *, credentials=None, timeouts=QUICK) -> Rendezvous:
    peers = [peer for peer in range(len(addresses)) if peer != rank]
    return Rendezvous(rank, peers, addresses, listener, credentials or credentials_of(rank), timeouts)


def mesh_of(participants, hub, tasks, *, parameters=P, silence=60.0, delays=None, datagrams=None) -> Mesh:
    terms = Terms(participants, parameters, silence)
    return Mesh(terms, delays=delays or {}, tasks=tasks, hub=hub, datagrams=datagrams)


def free_addresses(count: int) -> list[Address]:
    """Where nobody listens now."""
    sockets, addresses = listeners(count)
    for each in sockets:
        each.close()
    return addresses


async def meet(rendezvous: Rendezvous) -> Mapping[int, Connections]:
    """The connections with all peers; nobody else can connect afterwards."""
    meeting = asyncio.create_task(rendezvous.run())
    try:
        return await rendezvous.meet(rendezvous._pairs)
    finally:
        meeting.cancel()
        await asyncio.wait([meeting])


def bounded_loss(rank, participants, listener, dlcp, *, parameters=P, silence=60.0) -> BoundedLoss:
    """What goes in datagrams, of a model with a single variable."""
    return BoundedLoss(
        rank,
        DatagramSocket(listener),
        dlcp,
        Layout(("weight",), ((parameters,),)),
        workers=participants,
        participants=participants,
        priorities=8,
        silence=silence,
    )


@asynccontextmanager
async def mesh(count: int, *, dlcp=None, **settings) -> AsyncIterator[tuple[Sequence[Mesh], Sequence[Inbox]]]:
    """`count` nodes, each connected with all others; with `dlcp`, what may lose a part goes in datagrams."""
    sockets, addresses = listeners(count)
    rendezvous = [rendezvous_of(rank, addresses, listener) for rank, listener in enumerate(sockets)]
    inboxes = [Inbox() for _ in range(count)]
    sizes = {name: settings[name] for name in ("parameters", "silence") if name in settings}
    datagrams = [
        bounded_loss(rank, count, listener, dlcp, **sizes) if dlcp else None for rank, listener in enumerate(sockets)
    ]
    async with asyncio.TaskGroup() as tasks:
        nodes = [
            mesh_of(count, inbox, tasks, datagrams=each, **settings)
            for inbox, each in zip(inboxes, datagrams, strict=True)
        ]
        for node, found in zip(nodes, await asyncio.gather(*map(meet, rendezvous)), strict=True):
            for peer, connections in found.items():
                node.connect(peer, connections)
        yield nodes, inboxes
        for node in nodes:
            await node.close()


class Puppet:
    """Node 1 of two, as node 0 sees it: its connections to and from node 0."""

    def __init__(self) -> None:
        self.outgoing: dict[Channel, Connection] = {}
        self.incoming: dict[Channel, Connection] = {}

    async def join(self, listener: socket.socket, victim: Address) -> None:
        loop = asyncio.get_running_loop()
        listener.setblocking(False)
        for channel in Channel:
            self.outgoing[channel] = await introduce(victim, Ends(1, 0, channel))
        for _ in Channel:
            connection = Connection((await loop.sock_accept(listener))[0], identity_of(1))
            ends, _ = await connection.admit(RUN, 1)
            await connection.welcome(STANDING)
            self.incoming[ends.channel] = connection

    async def send(self, kind: Kind, *buffers: bytes, channel: Channel = Channel.CONTROL) -> None:
        await self.outgoing[channel].send(kind, Payload(buffers), timeout=60)

    def leave(self) -> None:
        for connection in (*self.outgoing.values(), *self.incoming.values()):
            connection.close()


async def introduce(
    victim: Address, ends: Ends, standing: Standing = STANDING, credentials: Credentials | None = None
) -> Connection:
    return (await Connection.connect(victim, credentials or credentials_of(ends.sender), ends, standing))[0]


@asynccontextmanager
async def victim_of_puppet(*, dlcp=None, **settings) -> AsyncIterator[tuple[Mesh, Inbox, Puppet]]:
    """Node 0, honest, connected with a puppet."""
    sockets, addresses = listeners(2)
    inbox, puppet = Inbox(), Puppet()
    sizes = {name: settings[name] for name in ("parameters", "silence") if name in settings}
    datagrams = bounded_loss(0, 2, sockets[0], dlcp, **sizes) if dlcp else None
    async with asyncio.TaskGroup() as tasks:
        victim = mesh_of(2, inbox, tasks, datagrams=datagrams, **settings)
        rendezvous = rendezvous_of(0, addresses, sockets[0])
        found, _ = await asyncio.gather(meet(rendezvous), puppet.join(sockets[1], addresses[0]))
        victim.connect(1, found[1])
        try:
            yield victim, inbox, puppet
        finally:
            puppet.leave()
            sockets[1].close()
            await victim.close()


async def until(condition, seconds: float = 60.0) -> None:
    """Wait for something to come true."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)
