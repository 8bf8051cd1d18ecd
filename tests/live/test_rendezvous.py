"""How nodes meet: peers find each other, strangers get nowhere."""

import asyncio
import ssl
import time
import tracemalloc
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.live.connection import Connection, connected
from dlion_sim.live.frames import Kind, Payload, PeerError, head
from dlion_sim.live.handshake import LARGEST_PAYLOAD, Ends
from dlion_sim.live.tls_stream import PeerClosedError
from dlion_sim.protocol.messages import Channel
from tests.live.attacks import CLIENT_HELLO, drip, pester
from tests.live.mesh import (
    QUICK,
    credentials_of,
    free_addresses,
    identity_of,
    introduce,
    listeners,
    meet,
    rendezvous_of,
    until,
)


def close(connections):
    for each in connections.values():
        each.close()


@asynccontextmanager
async def alone(timeouts=QUICK):
    """Node 0 of two, which waits for the other in vain, and its address."""
    sockets, addresses = listeners(2)
    rendezvous = rendezvous_of(0, addresses, sockets[0], timeouts=timeouts)
    waiting = asyncio.create_task(meet(rendezvous))
    try:
        yield rendezvous, addresses[0]
    finally:
        waiting.cancel()
        await asyncio.wait([waiting])
        sockets[1].close()


async def test_nodes_meet_in_any_order_of_start():
    sockets, addresses = listeners(3)
    nodes = [rendezvous_of(rank, addresses, listener) for rank, listener in enumerate(sockets)]
    early = [asyncio.create_task(meet(each)) for each in nodes[:2]]
    await asyncio.sleep(0.3)
    assert all("node 2" in str(each.missing(each._pairs)) for each in nodes[:2])
    found = await asyncio.gather(*early, meet(nodes[2]))
    for rank, connections in enumerate(found):
        assert set(connections) == {peer for peer in range(3) if peer != rank}
        assert all(set(each.outgoing) == set(each.incoming) == set(Channel) for each in connections.values())
        assert nodes[rank].missing(connections) == []
        close(connections)
    assert all(listener.fileno() == -1 for listener in sockets)


@pytest.mark.parametrize("other", [{"secret": b"another secret.."}, {"run": b"s" * 32}], ids=["secret", "run"])
async def test_nodes_of_different_secrets_or_runs_never_meet_and_report_why(other):
    sockets, addresses = listeners(2)
    both = [credentials_of(0), credentials_of(1, **other)]
    ours, theirs = (
        rendezvous_of(rank, addresses, listener, credentials=credentials)
        for rank, (listener, credentials) in enumerate(zip(sockets, both, strict=True))
    )
    tasks = [asyncio.create_task(meet(each)) for each in (ours, theirs)]
    await until(
        lambda: (
            ours.refused
            and theirs.refused
            and "same secret or CA, scenario, version and code?" in str(ours.missing([1]))
        )
    )
    assert not any(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_a_pair_that_connects_one_way_only_is_reported_at_both_ends():
    sockets, addresses = listeners(2)
    (nowhere,) = free_addresses(1)
    nodes = [rendezvous_of(0, [addresses[0], nowhere], sockets[0]), rendezvous_of(1, addresses, sockets[1])]
    tasks = [asyncio.create_task(meet(each)) for each in nodes]
    cannot = f"node 0 cannot connect to node 1 at {nowhere} (Connection refused), which can connect to node 0"
    has_not = f"node 0 at {addresses[0]} has not connected to node 1 at {addresses[1]}, which can connect to it"
    await until(lambda: nodes[0].missing([1])[0] == cannot and nodes[1].missing([0])[0] == has_not)
    assert all("connect both ways" in nodes[rank].missing([1 - rank])[1] for rank in range(2))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_a_node_that_is_no_peer_is_refused():
    async with alone() as (rendezvous, address):
        with pytest.raises(PeerError, match="the connection"):
            await introduce(address, Ends(7, 0, Channel.DATA))
        assert rendezvous.refused == 1


async def test_a_second_connection_on_the_same_lane_takes_the_place_of_the_first():
    """As where its sender has not heard that the first one was welcome."""
    async with alone() as (rendezvous, address):
        first, second = [await introduce(address, Ends(1, 0, Channel.DATA)) for _ in range(2)]
        with pytest.raises(PeerClosedError):
            await first.read(limit=0)
        with pytest.raises(ssl.SSLWantReadError):
            second.socket.recv(1)
        assert rendezvous.refused == 0
    first.close()
    second.close()


async def test_a_connection_that_could_not_be_welcomed_is_closed_and_forgotten(monkeypatch):
    accepted = []

    async def fails(connection, standing):
        accepted.append(connection)
        raise PeerError("broke the connection")

    monkeypatch.setattr(Connection, "welcome", fails)
    async with alone() as (rendezvous, address):
        with pytest.raises(PeerError):
            await introduce(address, Ends(1, 0, Channel.DATA))
        assert [connection.socket.fileno() for connection in accepted] == [-1]
        assert not rendezvous._pairs[1].connections.incoming


plain = st.builds(lambda kind, body: head(kind, len(body)) + body, st.sampled_from(Kind), st.binary(max_size=200))
truncated = st.integers(0, len(CLIENT_HELLO)).map(lambda length: CLIENT_HELLO[:length])
continued = st.binary(max_size=200).map(lambda more: CLIENT_HELLO + more)
damaged = st.integers(0, 8 * len(CLIENT_HELLO) - 1).map(
    lambda bit: (int.from_bytes(CLIENT_HELLO) ^ 1 << bit).to_bytes(len(CLIENT_HELLO))
)


@settings(max_examples=20)
@given(st.lists(st.binary(max_size=300) | plain | truncated | continued | damaged, min_size=100, max_size=100))
def test_strangers_get_nowhere(attempts):
    """Noise, plain frames, beginnings of TLS without an end: no welcome, and the peers still meet."""

    async def scenario():
        sockets, addresses = listeners(2)
        nodes = [rendezvous_of(rank, addresses, listener) for rank, listener in enumerate(sockets)]
        waiting = asyncio.create_task(meet(nodes[0]))
        for answer in await asyncio.gather(*(pester(addresses[0], data) for data in attempts)):
            assert len(answer) < 2000  # an alert, or a certificate
        assert nodes[0].refused == len(attempts)
        for connections in await asyncio.gather(waiting, meet(nodes[1])):
            close(connections)

    asyncio.run(scenario())


async def test_nobody_can_make_a_node_allocate():
    """Neither a stranger, by the longest message of TLS, nor a node of the CA, before it has said who it is."""
    async with alone() as (rendezvous, address):
        nodes = [Connection(await connected(address), identity_of(1), 0) for _ in range(20)]
        tracemalloc.start()
        await asyncio.gather(*(pester(address, b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(2**14)) for _ in nodes))
        for each in nodes:
            await each.shake_hands()
            await each.write((head(Kind.HELLO, 2**32 - 1),), None)
        await until(lambda: rendezvous.refused == 2 * len(nodes))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
        tracemalloc.stop()
        for each in nodes:
            each.close()


@pytest.mark.parametrize(
    ("kind", "payload"), [(Kind.HELLO, b""), (Kind.HELLO, b"x" * LARGEST_PAYLOAD), (Kind.MESSAGE, b"x"), (99, b"")]
)
async def test_the_right_certificate_does_not_let_in_what_makes_no_sense(kind, payload):
    async with alone() as (rendezvous, address):
        node = Connection(await connected(address), identity_of(1), 0)
        await node.shake_hands()
        await node.send(kind, Payload((payload,)))
        with pytest.raises(PeerError, match="the connection"):
            await node.read(limit=LARGEST_PAYLOAD)
        assert rendezvous.refused == 1
        node.close()


async def test_slow_strangers_do_not_delay_others_and_are_disconnected():
    sockets, addresses = listeners(2)
    timeouts = replace(QUICK, handshake=2.0)
    nodes = [rendezvous_of(rank, addresses, listener, timeouts=timeouts) for rank, listener in enumerate(sockets)]
    waiting = asyncio.create_task(meet(nodes[0]))
    slow = [asyncio.create_task(drip(addresses[0])) for _ in range(20)]
    await asyncio.sleep(0.1)
    began = time.monotonic()
    connections = await meet(nodes[1])
    assert time.monotonic() - began < 1.5
    assert nodes[0].refused == 0
    close(connections)
    close(await waiting)
    for each in slow:
        each.cancel()
    await asyncio.wait(slow)


async def test_silent_strangers_are_disconnected():
    async with alone(replace(QUICK, handshake=0.1)) as (rendezvous, address):
        connections = [await asyncio.open_connection(*address) for _ in range(50)]
        await until(lambda: rendezvous.refused == 50)
        for _, writer in connections:
            writer.close()
