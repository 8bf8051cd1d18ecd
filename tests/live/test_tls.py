"""Nodes over TLS: nobody between them can read, change or repeat anything, and nobody else is let in."""

import asyncio
import fcntl
import os
import termios

import numpy as np
import pytest
import torch

from dlion_sim.live.connection import Connection, connected, frame_bytes
from dlion_sim.live.datagram_socket import DatagramSocket
from dlion_sim.live.frames import Kind, Payload, PeerError
from dlion_sim.live.handshake import Credentials, Ends
from dlion_sim.live.identity import Identity
from dlion_sim.live.link_timing import Meter
from dlion_sim.protocol.knowledge.direct import WeightsRequest
from dlion_sim.protocol.messages import Channel, Contribution, Message, Weights
from dlion_sim.scenario import Dlcp
from tests.live.attacks import ANOTHER_SECRET, ENDS, careless, expired
from tests.live.mesh import (
    RUN,
    SECRET,
    STANDING,
    Inbox,
    credentials_of,
    identity_of,
    introduce,
    listeners,
    meet,
    mesh,
    mesh_of,
    rendezvous_of,
    until,
)
from tests.live.wire import record_of, relay_to, send_raw

P = 20_000
SECRETS = torch.rand(P, generator=torch.Generator().manual_seed(1))
"""The parameters that nobody may read."""


def readable_in(seen: bytes) -> int:
    """How many pairs of neighbouring entries of `SECRETS` somebody has seen."""
    known = np.frombuffer(SECRETS.numpy().tobytes(), np.uint64)
    found = 0
    for shift in range(8):
        words = np.frombuffer(seen[shift : shift + (len(seen) - shift) // 8 * 8], np.uint64)
        found += int(np.isin(known, words).sum())
    return found


def test_what_is_readable_would_be_found():
    assert readable_in(b"before" + Message(0, Contribution(1, 32), (SECRETS,)).encode() + b"after") == P // 2


async def test_nothing_that_a_node_sends_another_is_readable_on_the_wire():
    sockets, (first, second) = listeners(2)
    inboxes = [Inbox(), Inbox()]
    async with relay_to(first) as to_first, relay_to(second) as to_second, asyncio.TaskGroup() as tasks:
        nodes = [mesh_of(2, inbox, tasks, parameters=P) for inbox in inboxes]
        places = ([first, to_second.address], [to_first.address, second])
        met = [rendezvous_of(rank, places[rank], sockets[rank]) for rank in (0, 1)]
        for node, found in zip(nodes, await asyncio.gather(*map(meet, met)), strict=True):
            for peer, connections in found.items():
                node.connect(peer, connections)
        for rank, node in enumerate(nodes):
            for body in (Contribution(1, 32), Weights(1)):
                node.send(1 - rank, Message(rank, body, (SECRETS,)))
            node.send(1 - rank, Message(rank, WeightsRequest()))
        await until(lambda: all(len(inbox.messages) == 3 for inbox in inboxes))
        for inbox in inboxes:
            assert sum(bool(message.tensors) and message.tensors[0].equal(SECRETS) for message in inbox.messages) == 2
        for node in nodes:
            await node.close()
    for wire in (to_first, to_second):
        seen = b"".join(wire.sent + wire.answered)
        assert len(wire.sent) == len(Channel)
        assert len(seen) > 8 * P
        assert readable_in(seen) == 0
        for word in (b"weights_request", b"contribution", STANDING.process, RUN):
            assert word not in seen


async def test_nothing_in_datagrams_is_readable(monkeypatch):
    seen: list[bytes] = []
    send = DatagramSocket.send

    def overheard(datagrams, data, tos, address):
        seen.append(data)
        return send(datagrams, data, tos, address)

    monkeypatch.setattr(DatagramSocket, "send", overheard)
    async with mesh(2, dlcp=Dlcp(loss_bound=0.0), parameters=P) as (nodes, inboxes):
        nodes[0].send(1, Message(0, Contribution(1, 32), (SECRETS,)))
        await until(lambda: inboxes[1].messages)
        assert inboxes[1].messages[0].tensors[0].equal(SECRETS)
    assert sum(map(len, seen)) > 4 * P
    assert readable_in(b"".join(seen)) == 0


@pytest.mark.parametrize("sizes", [(), (0,), (10,), (300, 5), (200, 2**14), (8000, 70_000, 70_001)], ids=str)
async def test_a_frame_takes_as_many_bytes_of_tcp_as_is_said(sizes):
    """Links are timed by TCP's count of them."""
    payload = Payload(tuple(map(os.urandom, sizes)))
    one, other = await pair()
    reading = asyncio.create_task(other.read(limit=1 << 20))
    meter = Meter(one.socket)
    delivery = meter.begin(frame_bytes(payload))
    await one.send(Kind.ALIVE, payload)
    assert await reading == (Kind.ALIVE, b"".join(payload.buffers))
    await until(lambda: fcntl.ioctl(one.socket, termios.TIOCOUTQ, bytes(4)) == bytes(4))  # all is acknowledged
    assert meter.delivered(delivery) == frame_bytes(payload)
    for each in (one, other):
        each.close()


async def pair() -> tuple[Connection, Connection]:
    """Both ends of a connection from node 1 to node 0."""
    (listener,), (address,) = listeners(1)
    with listener:
        listener.setblocking(False)
        connecting = asyncio.create_task(introduce(address, ENDS))
        accepted = Connection((await asyncio.get_running_loop().sock_accept(listener))[0], identity_of(0))
        await accepted.admit(RUN, 0)
        await accepted.welcome(STANDING)
    return await connecting, accepted


async def test_a_connection_is_of_tls_1_3_and_both_ends_know_the_keys_of_its_datagrams():
    one, other = await pair()
    assert one._tls.version() == other._tls.version() == "TLSv1.3"
    assert (one.key, one.peer_key) == (other.peer_key, other.key)
    assert len({one.key, other.key}) == 2
    for each in (one, other):
        each.close()


async def refusal(identity: Identity, ends: Ends = ENDS, run: bytes = RUN) -> str:
    """Why node 0 refuses one with that identity."""
    (listener,), (address,) = listeners(1)
    with listener:
        listener.setblocking(False)
        connecting = asyncio.create_task(Connection.connect(address, Credentials(identity, run), ends, STANDING))
        accepted = Connection((await asyncio.get_running_loop().sock_accept(listener))[0], identity_of(0))
        with pytest.raises(PeerError) as told:
            await accepted.admit(RUN, 0)
        accepted.close()
    with pytest.raises(PeerError):
        await connecting
    return str(told.value)


async def test_a_node_of_another_ca_is_refused():
    assert "has no certificate of the run" in await refusal(careless(Identity.of_secret(ANOTHER_SECRET, 1)))


async def test_a_node_without_a_certificate_is_refused():
    identity = careless(Identity.of_secret(SECRET, 1))
    bare = type(identity.client)(identity.client.protocol)
    assert "did not return a certificate" in await refusal(careless(Identity(bare, identity.server)))


async def test_an_expired_certificate_is_refused():
    assert "certificate has expired" in await refusal(expired())


async def test_a_node_is_refused_in_the_name_of_another():
    assert await refusal(identity_of(2)) == "claims to be node 1, but has another one's certificate"


async def test_a_node_of_another_run_or_for_another_node_is_refused():
    assert await refusal(identity_of(1), run=b"s" * 32) == "runs another scenario, version or code of its own"
    careless_one = careless(Identity.of_secret(SECRET, 1))
    assert await refusal(careless_one, Ends(1, 3, Channel.DATA)) == "takes this for node 3, not 0"


@pytest.mark.parametrize("theirs", [credentials_of(0, ANOTHER_SECRET), credentials_of(2)], ids=["CA", "name"])
async def test_nobody_connects_to_an_impostor_or_tells_it_anything(theirs):
    (listener,), (address,) = listeners(1)
    with listener:
        listener.setblocking(False)
        connecting = asyncio.create_task(introduce(address, ENDS))
        impostor = Connection((await asyncio.get_running_loop().sock_accept(listener))[0], theirs.identity)
        with pytest.raises(PeerError, match=r"refused the connection|the connection"):
            await impostor.admit(RUN, 0)
        with pytest.raises(PeerError, match="has no certificate of the run"):
            await connecting
        impostor.close()


async def test_what_somebody_between_changes_ends_the_connection():
    one, other = await pair()
    record = bytearray(record_of(one, b"x" * 100))
    record[-1] ^= 1
    send_raw(one, record)
    with pytest.raises(PeerError, match="bad record mac"):
        await other.read(limit=100)
    for each in (one, other):
        each.close()


async def test_what_somebody_has_recorded_opens_no_connection():
    sockets, addresses = listeners(2)
    rendezvous = rendezvous_of(0, addresses, sockets[0])
    waiting = asyncio.create_task(meet(rendezvous))
    async with relay_to(addresses[0]) as wire:
        (await introduce(wire.address, ENDS)).close()
        for count in range(1, 4):
            stranger = await connected(addresses[0])
            await asyncio.get_running_loop().sock_sendall(stranger, wire.sent[0])
            await until(lambda count=count: rendezvous.refused == count)
            stranger.close()
    waiting.cancel()
    await asyncio.wait([waiting])
    sockets[1].close()


async def test_a_frame_may_come_in_pieces_and_two_at_once():
    one, other = await pair()
    records = record_of(one, bytes([Kind.ALIVE, 5, 0, 0]))
    records += record_of(one, b"\0abcde" + bytes([Kind.DONE, 0, 0, 0, 0]))
    for byte in records:
        send_raw(one, bytes([byte]))
    assert await other.read(limit=5) == (Kind.ALIVE, b"abcde")
    assert await other.read(limit=5) == (Kind.DONE, b"")
    for each in (one, other):
        each.close()
