"""How nodes meet: peers find each other, strangers get nowhere."""

import asyncio
import tracemalloc
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.live.frames import HEAD_BYTES, Kind, Payload, PeerError, Seal, head
from dlion_sim.live.handshake import Acceptor, Connector, Credentials, Ends
from dlion_sim.protocol.messages import Channel
from tests.live.mesh import OURS, QUICK, STANDING, introduce, listeners, meet, rendezvous_of, until

LONG = SimpleNamespace(length=2**32 - 1, crc=0)
CHALLENGE_BYTES = HEAD_BYTES + 32


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
    secrets = [OURS, replace(OURS, **other)]
    ours, theirs = (
        rendezvous_of(rank, addresses, listener, credentials=credentials)
        for rank, (listener, credentials) in enumerate(zip(sockets, secrets, strict=True))
    )
    tasks = [asyncio.create_task(meet(each)) for each in (ours, theirs)]
    await until(
        lambda: ours.refused and theirs.refused and "same secret, scenario, version and code?" in str(ours.missing([1]))
    )
    assert not any(task.done() for task in tasks)
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
        loop = asyncio.get_running_loop()
        assert await loop.sock_recv(first.socket, 1) == b""
        with pytest.raises(BlockingIOError):
            second.socket.recv(1)
        assert rendezvous.refused == 0
    first.close()
    second.close()


async def pester(address, data: bytes) -> bytes:
    """Connect, send, and return what comes until the other side hangs up, or nothing comes any more."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(data)
    writer.write_eof()
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def proof(credentials: Credentials) -> bytes:
    """A proof as somebody with these credentials made it for another connection."""
    return Connector(credentials, Ends(1, 0, Channel.DATA), STANDING).proof(Acceptor(OURS, 0).challenge)


proofs = st.sampled_from([OURS, Credentials(b"another secret..", OURS.run)]).map(proof)
frames = st.builds(
    lambda kind, body, announced: head(kind, announced or Payload((body,)), Seal()) + body,
    st.sampled_from(Kind),
    st.binary(max_size=200) | proofs,
    st.none() | st.builds(SimpleNamespace, length=st.integers(0, 2**32 - 1), crc=st.integers(0, 2**32 - 1)),
)
truncated = st.tuples(frames, st.floats(0, 1)).map(lambda pair: pair[0][: int(pair[1] * len(pair[0]))])


@settings(max_examples=20)
@given(st.lists(st.binary(max_size=300) | frames | truncated, min_size=100, max_size=100))
def test_strangers_get_a_challenge_and_nothing_else(attempts):
    """Noise, truncated frames, wrong lengths, other secrets, replays: no welcome, and the peers still meet."""

    async def scenario():
        sockets, addresses = listeners(2)
        nodes = [rendezvous_of(rank, addresses, listener) for rank, listener in enumerate(sockets)]
        waiting = asyncio.create_task(meet(nodes[0]))
        for answer in await asyncio.gather(*(pester(addresses[0], data) for data in attempts)):
            assert len(answer) in (0, CHALLENGE_BYTES)
        assert nodes[0].refused == len(attempts)
        for connections in await asyncio.gather(waiting, meet(nodes[1])):
            close(connections)

    asyncio.run(scenario())


async def test_a_stranger_cannot_make_a_node_allocate():
    async with alone() as (_, address):
        tracemalloc.start()
        await asyncio.gather(*(pester(address, head(Kind.PROOF, LONG, Seal())) for _ in range(20)))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
        tracemalloc.stop()


async def test_silent_strangers_are_disconnected():
    async with alone(replace(QUICK, handshake=0.1)) as (rendezvous, address):
        connections = [await asyncio.open_connection(*address) for _ in range(50)]
        await until(lambda: rendezvous.refused == 50)
        for _, writer in connections:
            writer.close()
