"""Nodes that lose each other and are connected again; and those who would take another one's place."""

import asyncio
import gc
import weakref
from contextlib import asynccontextmanager

import pytest

from dlion_sim.live.connection import connected, listen
from dlion_sim.live.frames import Kind, PeerError, head
from dlion_sim.live.handshake import Ends, Standing
from dlion_sim.live.mesh import Mesh
from dlion_sim.live.rendezvous import Rendezvous
from dlion_sim.live.session import Terms
from dlion_sim.protocol.knowledge.direct import WeightsRequest
from dlion_sim.protocol.messages import Channel, Message
from tests.live.mesh import QUICK, Inbox, credentials_of, introduce, listeners, until
from tests.live.wire import relay_to

ASK = WeightsRequest()
AGAIN = Standing(b"again...", joins=True)


class Node(Inbox):
    """A node that takes in whoever it meets; it is in a run that is under way, unless it is to join one."""

    def __init__(self, rank, addresses, listener=None, *, joins=False, silence=60.0):
        super().__init__()
        self.rank = rank
        self.joins = joins
        self.silence = silence
        self.found: list[int] = []
        self.unreached: list[int] = []
        self.began = None if joins else asyncio.get_running_loop().time() - 100.0
        peers = [peer for peer in range(len(addresses)) if peer != rank]
        listener = listener or listen(addresses[rank])
        self.rendezvous = Rendezvous(rank, peers, addresses, listener, credentials_of(rank), QUICK, joins=joins)
        self.participants = len(addresses)

    @property
    def clock(self):
        return None if self.began is None else asyncio.get_running_loop().time() - self.began

    async def run(self):
        async with asyncio.TaskGroup() as tasks:
            terms = Terms(self.participants, 50, self.silence)
            self.mesh = Mesh(terms, delays={}, tasks=tasks, hub=self)
            self.listening = tasks.create_task(self.rendezvous._listen())
            reaching = [tasks.create_task(self.rendezvous._reach(pair)) for pair in self.rendezvous._pairs.values()]
            try:
                if not self.joins:
                    expected = [peer for peer in range(self.participants) if peer != self.rank]
                    for peer, connections in (await self.rendezvous.meet(expected)).items():
                        self.mesh.connect(peer, connections)
                        self.found.append(peer)
                self.rendezvous.attend(self)
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                for task in (self.listening, *reaching):
                    task.cancel()
                self.mesh._staying_alive.cancel()
                for session in self.mesh._sessions.values():
                    session.drop("is over here")
                    session.close()
                raise

    def met(self, peer, connections):
        self.began = self.began or self.rendezvous.began
        self.mesh.connect(peer, connections)
        self.losses.pop(peer, None)
        self.found.append(peer)

    def missed(self, peer):
        self.unreached.append(peer)

    def superseded(self, peer):
        self.mesh.superseded(peer)

    def lost(self, peer, reason):
        self.losses[peer] = reason
        self.rendezvous.parted(peer)

    def ask(self, peer):
        self.mesh.send(peer, Message(self.rank, ASK))


@asynccontextmanager
async def nodes(count, **options):
    """So many that are connected, their addresses, and the tasks that they run in."""
    sockets, addresses = listeners(count)
    made = [Node(rank, addresses, listener, **options) for rank, listener in enumerate(sockets)]
    running = [asyncio.create_task(node.run()) for node in made]
    try:
        await until(lambda: all(len(node.found) == count - 1 for node in made))
        yield made, addresses, running
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running)


async def crash(task):
    task.cancel()
    await asyncio.wait([task])


async def test_a_node_that_was_started_again_is_found_and_what_it_says_arrives():
    async with nodes(3) as (made, addresses, running):
        await crash(running[2])
        await until(lambda: 2 in made[0].losses and 2 in made[1].losses)
        again = Node(2, addresses, joins=True)
        running.append(asyncio.create_task(again.run()))
        await until(lambda: sorted(again.found) == [0, 1] and not any(2 in node.losses for node in made[:2]))
        again.ask(0)
        made[0].ask(2)
        await until(lambda: made[0].messages and again.messages)
        assert again.clock == pytest.approx(made[0].clock, abs=30)  # the run began 100 s ago
        assert not again.unreached


async def test_the_session_with_a_former_process_is_freed():
    """With what it was sending and receiving, although nothing else makes Python look for cycles."""
    async with nodes(2) as (made, addresses, running):
        former = weakref.ref(made[0].mesh._sessions[1])
        gc.collect()
        gc.disable()
        try:
            await crash(running[1])
            await until(lambda: 1 in made[0].losses)
            again = Node(1, addresses, joins=True)
            running.append(asyncio.create_task(again.run()))
            await until(lambda: again.found == [0] and not made[0].losses)
            await until(lambda: former() is None)
        finally:
            gc.enable()


async def test_a_node_that_is_back_before_it_was_missed_is_lost_and_then_found():
    """Its connections have not ended, as where a machine has vanished."""
    async with nodes(2) as (made, addresses, running):
        heard = []
        made[0].lost = lambda peer, reason: (heard.append(reason), made[0].rendezvous.parted(peer))
        await crash(made[1].listening)
        again = Node(1, addresses, joins=True)
        running.append(asyncio.create_task(again.run()))
        await until(lambda: again.found == [0] and made[0].found == [1, 1])
        assert heard == ["was connected with anew"]
        made[0].ask(1)
        await until(lambda: again.messages)
        assert not made[1].messages


async def test_a_replaced_node_cannot_return():
    async with nodes(2) as (made, addresses, running):
        await crash(made[1].listening)
        again = Node(1, addresses, joins=True)
        running.append(asyncio.create_task(again.run()))
        await until(lambda: again.found == [0] and 0 in made[1].losses)
        refused = made[0].rendezvous.refused
        await until(lambda: made[0].rendezvous.refused > refused + 3)
        assert made[0].found == [1, 1]
        again.ask(0)
        await until(lambda: made[0].messages)


async def test_nodes_that_gave_each_other_up_reconnect():
    async with nodes(2) as (made, _, _):
        for who in (0, 1, 0):
            before = len(made[0].found)
            made[who].mesh._sessions[1 - who].drop("was silent for too long")
            await until(lambda before=before: all(len(node.found) > before for node in made))
            for node in made:
                node.ask(1 - node.rank)
            await until(lambda before=before: all(len(node.messages) == before for node in made))


async def test_both_may_give_each_other_up_at_the_same_time():
    async with nodes(2) as (made, _, _):
        for node in made:
            node.mesh._sessions[1 - node.rank].drop("was silent for too long")
        await until(lambda: all(len(node.found) == 2 for node in made))
        for node in made:
            node.ask(1 - node.rank)
        await until(lambda: all(node.messages for node in made))
        await asyncio.sleep(0.3)
        assert all(len(node.found) == 2 for node in made)


async def test_a_joining_node_learns_which_peers_it_does_not_reach():
    async with nodes(3) as (_, addresses, running):
        await crash(running[1])
        await crash(running[2])
        again = Node(2, addresses, joins=True)
        running.append(asyncio.create_task(again.run()))
        await until(lambda: again.found == [0] and again.unreached == [1])


async def test_nobody_begins_a_run_that_is_under_way_without_joining_it():
    async with nodes(2) as (made, addresses, running):
        await crash(running[1])
        await until(lambda: made[0].losses)
        with pytest.raises(PeerError, match="the connection"):
            await introduce(addresses[0], Ends(1, 0, Channel.DATA))
        (await introduce(addresses[0], Ends(1, 0, Channel.DATA), AGAIN)).close()
        assert made[0].found == [1]


@pytest.mark.parametrize(
    "standing",
    [Standing(b"another."), Standing(b"another.", joins=True)],
    ids=["begins", "joins"],
)
async def test_a_node_is_replaced_only_by_one_with_all_connections_and_the_secret(standing):
    """Of one that does not know the secret, or has but one connection, nobody hears."""
    async with nodes(2) as (made, addresses, _):
        stranger = credentials_of(1, secret=b"another secret..")
        for data in (b"", b"noise", head(Kind.HELLO, 128) + b"x" * 128):
            connection = await connected(addresses[0])
            await asyncio.get_running_loop().sock_sendall(connection, data)
            connection.close()
        refused = made[0].rendezvous.refused
        with pytest.raises(PeerError):
            await introduce(addresses[0], Ends(1, 0, Channel.DATA), standing, credentials=stranger)
        await until(lambda: made[0].rendezvous.refused > refused)
        for node in made:
            node.ask(1 - node.rank)
        await until(lambda: all(node.messages for node in made))
        assert not any(node.losses for node in made)
        assert [node.found for node in made] == [[1], [0]]


async def test_another_nodes_certificate_replaces_no_node():
    async with nodes(3) as (made, addresses, _):
        credentials = credentials_of(2)
        for count in range(1, 4):
            with pytest.raises(PeerError, match="the connection"):
                await introduce(addresses[0], Ends(1, 0, Channel.DATA), AGAIN, credentials)
            assert made[0].rendezvous.refused == count
        assert [node.found for node in made] == [[1, 2], [0, 2], [0, 1]]
        assert not made[0].losses


async def test_a_recorded_connection_replaces_no_node():
    async with nodes(2) as (made, addresses, _), relay_to(addresses[0]) as wire:
        with pytest.raises(PeerError, match="the connection"):  # a process whose run has not begun
            await introduce(wire.address, Ends(1, 0, Channel.DATA))
        refused = made[0].rendezvous.refused
        for count in range(1, 6):
            connection = await connected(addresses[0])
            await asyncio.get_running_loop().sock_sendall(connection, wire.sent[0])
            await until(lambda count=count: made[0].rendezvous.refused == refused + count)
            connection.close()
        assert [node.found for node in made] == [[1], [0]]
        assert not made[0].losses
