"""Messages in datagrams between nodes: what arrives of them, and that nobody else's datagrams change anything."""

import asyncio
import random
import socket
from contextlib import suppress
from dataclasses import replace

import pytest
import torch

from dlion_sim.bounded_loss.cutting import PAYLOAD
from dlion_sim.live.datagram_socket import DatagramSocket
from dlion_sim.live.datagrams import Feedback, Key, Packet, Sort
from dlion_sim.live.frames import Kind
from dlion_sim.live.notices import Bitmap, Notice, Probe, Start, Stop, parse
from dlion_sim.live.tls_stream import PeerClosedError
from dlion_sim.protocol.messages import Channel, Contribution, Message, Weights
from dlion_sim.scenario import Dlcp
from tests.live.attacks import Forger
from tests.live.mesh import mesh, until, victim_of_puppet

P = 20_000
"""57 packets."""
WHOLE = Message(0, Contribution(3, 32), (torch.arange(1, P + 1, dtype=torch.float32),))
SOME = Message(0, Contribution(4, 32, 1.0), (torch.tensor([1, 7], dtype=torch.int32), torch.tensor([0.5, -0.5])))
NONE = Message(0, Contribution(5, 32, 1.0), (torch.tensor([], dtype=torch.int32), torch.tensor([])))
WEIGHTS = Message(0, Weights(1), (torch.ones(P),))
ALL = Dlcp(loss_bound=0.0)


@pytest.fixture
def lossy(monkeypatch):
    """Has a part of all datagrams lost, at random."""

    def begin(part):
        send, rng = DatagramSocket.send, random.Random(1)

        def lose(self, datagram, tos, address):
            return rng.random() < part or send(self, datagram, tos, address)

        monkeypatch.setattr(DatagramSocket, "send", lose)

    return begin


@pytest.mark.parametrize("part", [0.0, 0.1, 0.4])
async def test_without_a_bound_messages_arrive_in_order_and_as_they_were(lossy, part):
    lossy(part)
    async with mesh(2, dlcp=ALL, parameters=P) as (nodes, inboxes):
        for message in (WHOLE, SOME, NONE, WEIGHTS, WHOLE):  # a long one first
            nodes[0].send(1, message)
        nodes[1].send(0, replace(WHOLE, sender=1))
        await until(lambda: len(inboxes[1].messages) == 5 and inboxes[0].messages)
        data = [message for message in inboxes[1].messages if message.body.channel is Channel.DATA]
        for sent, received in zip((WHOLE, SOME, NONE, WHOLE), data, strict=True):
            assert (received.sender, received.body) == (sent.sender, sent.body)
            assert all(map(torch.equal, received.tensors, sent.tensors))
        # SOME is too short to tell how fast the link is.
        await until(lambda: len(inboxes[0].timings) == 3 and len(inboxes[0].departed) == 5)
        assert len(inboxes[0].sendings) == 4
        assert all(peer == 1 and seconds > 0 for peer, _, seconds in inboxes[0].timings)
        assert not any(inbox.losses for inbox in inboxes)


async def test_a_links_first_message_goes_by_tcp_if_it_is_short_so_that_a_probe_tells_how_fast_it_is():
    async with mesh(2, dlcp=ALL, parameters=P) as (nodes, inboxes):
        for _ in range(2):
            nodes[0].send(1, SOME)
        await until(lambda: len(inboxes[0].transfers) == 2 and len(inboxes[0].timings) == 1)
        assert [transfer.loss is None for transfer in inboxes[0].transfers] == [True, False]


async def test_within_the_bound_a_message_is_there_though_some_is_lost(lossy):
    lossy(0.05)
    async with mesh(2, dlcp=Dlcp(loss_bound=0.1), parameters=P) as (nodes, inboxes):
        nodes[0].send(1, WHOLE)
        await until(lambda: inboxes[1].messages and inboxes[0].transfers)
        (values,) = inboxes[1].messages[0].tensors
        lost = inboxes[0].transfers[0].loss.lost
        assert 0 < lost <= 0.1 * 4 * P
        assert int((values == 0).sum()) * 4 == lost
        assert torch.equal(values[values != 0], WHOLE.tensors[0][values != 0])


async def test_ten_thousand_hostile_datagrams_change_nothing(monkeypatch):
    """Neither what arrives, nor who is a peer. What is sent again of messages that are over comes too late, as if by
    itself; all else is refused."""
    messages = [
        Message(rank, Contribution(count, 32), (torch.randn(P, generator=torch.Generator().manual_seed(count)),))
        for rank in (0, 1)
        for count in range(20)
    ]
    forger = Forger(monkeypatch)
    async with mesh(2, dlcp=ALL, parameters=P) as (nodes, inboxes):
        for message in messages:
            nodes[message.sender].send(1 - message.sender, message)
        while len(inboxes[0].messages) + len(inboxes[1].messages) < len(messages) or forger.sent < 10_000:
            forger.send(50)
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        for rank, inbox in enumerate(inboxes):
            sent = [message for message in messages if message.sender != rank]
            assert [message.body for message in inbox.messages] == [message.body for message in sent]
            for one, other in zip(inbox.messages, sent, strict=True):
                assert torch.equal(one.tensors[0], other.tensors[0])
            assert not inbox.losses
        other, victim = sorted(nodes, key=forger.is_of)
        counts = victim._datagrams.counts
        assert counts.received >= 10_000
        assert counts.refused + counts.unannounced >= forger.sent
        assert counts.refused > 0.7 * forger.sent
        assert other._datagrams.counts.refused == 0


async def told(puppet) -> Notice:
    """The next notice that node 0 gives the puppet."""
    while True:
        kind, payload = await puppet.incoming[Channel.CONTROL].read(limit=10_000)
        if kind is Kind.NOTICE:
            return parse(payload)


def misbehaviour(errs, **settings) -> str:
    """Why a victim drops a puppet."""

    async def scenario():
        async with victim_of_puppet(**{"dlcp": ALL, "parameters": P, **settings}) as (victim, inbox, puppet):
            await errs(victim, puppet)
            await until(lambda: inbox.losses)
            assert not inbox.messages
            return inbox.losses[1]

    return asyncio.run(scenario())


THEIRS = replace(WHOLE, sender=1)


def start(message=THEIRS, number=1, channel=Channel.DATA):
    return Start(channel, number, message.header)


async def tell(puppet, notice, channel=Channel.CONTROL):
    await puppet.send(Kind.NOTICE, *notice.payload().buffers, channel=channel)


@pytest.mark.parametrize(
    ("notices", "reason"),
    [
        ([start(WHOLE)], "cannot come from it"),
        ([start(replace(WEIGHTS, sender=1), channel=Channel.WEIGHTS)], "cannot come from it"),
        ([start(Message(1, Contribution(1, 1), (torch.zeros(P + 1),)))], "announced no message of this run"),
        ([start(number=2)], "out of turn"),
        ([start(), start(number=2)], "out of turn"),
        ([Probe(Channel.DATA, 1, 57)], "has not announced"),
        ([Stop(Channel.DATA, 1, b"", 0.0)], "was not sent"),
        ([Bitmap(Channel.DATA, 1, b"")], "was not sent"),
        ([Probe(Channel.DATA, 1, -1)], "invalid notice"),
        ([Stop(Channel.DATA, 1, b"", float("nan"))], "invalid notice"),
        ([start(channel=9)], "invalid notice"),
    ],
)
def test_a_peer_that_sends_invalid_notices_is_dropped(notices, reason):
    async def errs(victim, puppet):
        for notice in notices:
            await tell(puppet, notice)

    assert reason in misbehaviour(errs)


@pytest.mark.parametrize("settings", [{"dlcp": None}, {"channel": Channel.DATA}], ids=["reliable", "elsewhere"])
def test_messages_are_announced_only_where_they_can_be(settings):
    channel = settings.pop("channel", Channel.CONTROL)

    async def errs(victim, puppet):
        await tell(puppet, start(), channel)

    assert "NOTICE out of place" in misbehaviour(errs, **settings)


def test_a_message_that_makes_no_sense_drops_its_sender():
    """Its indices are authentic, and not increasing."""
    indices = torch.tensor([7, 1], dtype=torch.int32)
    message = Message(1, Contribution(1, 1, 1.0), (indices, torch.ones(2)))

    async def errs(victim, puppet):
        await tell(puppet, start(message))
        header = Packet(Channel.DATA, 1, 1, 0, 0, 0.0).header()
        payload = message.encode()[len(message.header) :]
        key = Key(Sort.PACKET, puppet.outgoing[Channel.DATA].key)
        stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        stranger.sendto(key.seal(header, (payload,)), victim._datagrams.socket._socket.getsockname())

    assert "no message of this run: indices are not increasing" in misbehaviour(errs)


async def test_a_peer_that_answers_nothing_about_a_message_is_dropped_though_it_gives_signs_of_life():
    async with victim_of_puppet(dlcp=ALL, parameters=P, silence=1.0) as (victim, inbox, puppet):
        victim.send(1, WHOLE)
        found = []

        async def read():
            while True:
                found.append(await told(puppet))

        reading = asyncio.create_task(read())
        while not inbox.losses:
            await puppet.send(Kind.ALIVE)
            await asyncio.sleep(0.05)
        reading.cancel()
        assert "took nothing" in inbox.losses[1]
        assert inbox.sendings == [(1, WHOLE)]
        assert isinstance(found[0], Start)


async def test_a_peer_that_asks_again_and_again_for_the_same_is_dropped():
    """It has none of it at any time, as if a firewall were between."""
    async with victim_of_puppet(dlcp=ALL, parameters=P, silence=1.0) as (victim, inbox, puppet):
        victim.send(1, WHOLE)
        with suppress(PeerClosedError):
            while True:
                notice = await told(puppet)
                if isinstance(notice, Probe):
                    await tell(puppet, Bitmap(notice.channel, notice.number, bytes(8)))
        assert "took nothing" in inbox.losses[1]


async def test_a_peer_that_hangs_up_meanwhile_is_lost_and_no_message_to_it_waits():
    async with victim_of_puppet(dlcp=ALL, parameters=P) as (victim, inbox, puppet):
        for _ in range(2):
            victim.send(1, WHOLE)
        await told(puppet)
        puppet.leave()
        await until(lambda: inbox.losses and len(inbox.sendings) == 2)
        assert not inbox.departed
        assert not victim._datagrams.pump._open


async def test_marks_of_congested_links_are_told():
    async with victim_of_puppet(dlcp=ALL, parameters=P) as (victim, _, puppet):
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind(victim._sessions[1]._lanes[Channel.DATA].address)
        datagrams.setblocking(False)
        await tell(puppet, start())
        connection = puppet.outgoing[Channel.DATA]
        key, back = Key(Sort.PACKET, connection.key), Key(Sort.FEEDBACK, connection.peer_key)
        payload = bytes(PAYLOAD)
        for number, ecn in enumerate([2, 3, 2, 3]):
            datagrams.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 3 << 2 | ecn)
            header = Packet(Channel.DATA, 1, 1, number, number, 5.0 + number).header()
            datagrams.sendto(key.seal(header, (payload,)), victim._datagrams.socket._socket.getsockname())
        found = None
        while found is None or found.received < 4:
            data = await asyncio.get_running_loop().sock_recv(datagrams, 2000)
            assert back.opened(memoryview(data)) == b""
            found = Feedback.parse(data)
        assert found == Feedback(Channel.DATA, 0, 1, 3, 4, 2, 8.0)
        datagrams.close()


async def test_what_goes_in_datagrams_waits_for_no_other_channel():
    size = 1_000_000
    big = Message(0, Contribution(1, 32), (torch.zeros(size),))
    weights = Message(0, Weights(1), (torch.zeros(size),))
    async with mesh(2, dlcp=ALL, parameters=size) as (nodes, inboxes):
        for _ in range(5):
            nodes[0].send(1, big)
        nodes[0].send(1, weights)
        await until(lambda: len(inboxes[1].messages) == 6)
        assert weights.body in [message.body for message in inboxes[1].messages[:-1]]
