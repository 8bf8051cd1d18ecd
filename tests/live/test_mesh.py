"""Links between nodes: what is sent arrives; peers that die, stall or send what they may not are dropped; strangers
get nowhere."""

import asyncio
import socket
import struct
import time
from dataclasses import replace

import pytest
import torch

from dlion_sim.live import session
from dlion_sim.live.connection import WEIGHTS_TOS, frame_bytes
from dlion_sim.live.frames import Kind, Payload, head
from dlion_sim.live.link_timing import Meter
from dlion_sim.protocol.knowledge.direct import WeightsRequest
from dlion_sim.protocol.messages import Channel, Contribution, Message, Weights
from tests.live.mesh import P, mesh, until, victim_of_puppet
from tests.live.wire import arrived_at, record_of, send_raw

WHOLE = Message(0, Contribution(3, 32), (torch.arange(P, dtype=torch.float32),))
SOME = Message(0, Contribution(4, 32, 1.0), (torch.tensor([1, 7], dtype=torch.int32), torch.tensor([0.5, -0.5])))
NONE = Message(0, Contribution(5, 32, 1.0), (torch.tensor([], dtype=torch.int32), torch.tensor([])))
ASK = Message(0, WeightsRequest())
NONSENSE = Contribution(2**40, 32)
PROBES = 4 * frame_bytes(Payload((bytes(8192),)))


def on_the_wire(message: Message) -> int:
    return frame_bytes(Payload(message.buffers))


async def test_messages_arrive_in_order_and_as_they_were():
    async with mesh(3) as (nodes, inboxes):
        for message in (WHOLE, SOME, NONE):
            nodes[0].send(1, message)
        nodes[0].send(2, ASK)
        nodes[2].tell(Kind.READY, 2)
        await until(lambda: len(inboxes[1].messages) == 3 and inboxes[2].messages and len(inboxes[0].news) == 1)
        for sent, received in zip((WHOLE, SOME, NONE), inboxes[1].messages, strict=True):
            assert (received.sender, received.body) == (sent.sender, sent.body)
            assert all(map(torch.equal, received.tensors, sent.tensors))
        assert inboxes[2].messages[0].body == ASK.body
        assert inboxes[0].news == inboxes[1].news[:1] == [(Kind.READY, 2)]
        await until(lambda: len(inboxes[0].departed) == 4 and len(inboxes[0].timings) == 3)
        assert [peer for peer, _ in inboxes[0].sendings] == [1, 1, 1]
        assert all(peer == 1 and seconds > 0 for peer, _, seconds in inboxes[0].timings)
        assert not any(inbox.losses for inbox in inboxes)


async def test_messages_are_handed_over_late_where_asked():
    async with mesh(3, delays={0: 0.3}) as (nodes, inboxes):
        began = time.monotonic()
        for message in (WHOLE, SOME, NONE):
            nodes[0].send(1, message)
        nodes[2].send(1, replace(ASK, sender=2))
        await until(lambda: len(inboxes[1].messages) == 4)
        assert time.monotonic() - began > 0.3
        assert [message.sender for message in inboxes[1].messages] == [2, 0, 0, 0]
        assert [message.body for message in inboxes[1].messages[1:]] == [WHOLE.body, SOME.body, NONE.body]


@pytest.mark.parametrize("delay", [0.0, 0.2])
async def test_messages_that_a_peer_sent_before_its_end_arrive(monkeypatch, delay):
    monkeypatch.setattr(session, "_LAST_SECONDS", 60)
    async with victim_of_puppet(delays={1: delay}) as (_, inbox, puppet):
        puppet.outgoing[Channel.CONTROL].close()
        await asyncio.sleep(0.1)  # What it sent before takes longer than the end.
        for number in range(3):
            message = replace(WHOLE, sender=1, body=Contribution(number, 32))
            await puppet.send(Kind.MESSAGE, message.encode(), channel=Channel.DATA)
        puppet.leave()
        await until(lambda: inbox.losses)
        assert [message.body.iteration for message in inbox.messages] == [0, 1, 2]


async def test_a_peer_of_which_only_the_control_connection_ends_is_lost_before_long(monkeypatch):
    monkeypatch.setattr(session, "_LAST_SECONDS", 0.1)
    async with victim_of_puppet() as (_, inbox, puppet):
        puppet.outgoing[Channel.CONTROL].close()
        await until(lambda: inbox.losses)


async def test_such_a_peer_is_not_lost_before_what_it_has_sent_had_time_to_arrive(monkeypatch):
    monkeypatch.setattr(session, "_LAST_SECONDS", 600)
    async with victim_of_puppet() as (_, inbox, puppet):
        puppet.outgoing[Channel.CONTROL].close()
        await asyncio.sleep(0.5)
        assert not inbox.losses


async def test_messages_held_back_from_a_peer_that_misbehaves_are_dropped_with_it():
    async with victim_of_puppet(delays={1: 0.2}) as (_, inbox, puppet):
        await puppet.send(Kind.MESSAGE, replace(WHOLE, sender=1).encode())
        await puppet.send(Kind.GONE, b"")
        await until(lambda: inbox.losses)
        await asyncio.sleep(0.4)
        assert not inbox.messages


async def test_control_and_weights_do_not_wait_for_data():
    size = 2_000_000
    big = Message(0, Contribution(1, 32), (torch.zeros(size),))
    weights = Message(0, Weights(1), (torch.zeros(size),))
    async with mesh(2, parameters=size) as (nodes, inboxes):
        for _ in range(10):
            nodes[0].send(1, big)
        for message in (weights, ASK):
            nodes[0].send(1, message)
        await until(lambda: len(inboxes[1].messages) == 12)
        assert {ASK.body, weights.body}.isdisjoint(message.body for message in inboxes[1].messages[-3:])


async def test_weights_go_over_a_connection_of_their_own_and_tell_nothing_of_the_link():
    """Neither that they leave nor how fast, and no probe comes with them; networks can tell them from the others."""
    weights = Message(0, Weights(1), (torch.zeros(P),))
    async with victim_of_puppet() as (victim, inbox, puppet):
        for message in (weights, weights, WHOLE):
            victim.send(1, message)
        await until(lambda: len(inbox.departed) == 3 and len(inbox.timings) == 1)
        assert [message for _, message in inbox.sendings] == [WHOLE]
        assert [message for _, message, _ in inbox.timings] == [WHOLE]
        carried = {channel: len(arrived_at(connection)) for channel, connection in puppet.incoming.items()}
        assert carried[Channel.WEIGHTS] == 2 * on_the_wire(weights)
        assert carried[Channel.DATA] == on_the_wire(WHOLE) + PROBES
        marks = {
            channel: outbox._connection.socket.getsockopt(socket.IPPROTO_IP, socket.IP_TOS)
            for channel, outbox in victim._sessions[1]._outboxes.items()
        }
        assert marks == {Channel.CONTROL: 0, Channel.DATA: 0, Channel.WEIGHTS: WEIGHTS_TOS}


async def test_the_arrived_bytes_of_a_message_under_way_are_known():
    size = 8_000_000
    big = Message(0, Contribution(1, 32), (torch.zeros(size),))
    async with victim_of_puppet(parameters=size) as (victim, inbox, puppet):
        assert not list(victim.under_way())
        victim.send(1, big)
        await until(lambda: any(carried > 0 for _, carried in victim.under_way()))
        ((transfer, before),) = victim.under_way()
        assert (transfer.receiver, transfer.message) == (1, big)
        assert 0 < before < big.size
        connection = puppet.incoming[Channel.DATA]
        await connection.fill(memoryview(bytearray(big.size // 2)), None)
        await until(lambda: next(victim.under_way())[1] > before)
        await connection.fill(memoryview(bytearray(big.size // 2)), None)
        await until(lambda: inbox.departed)
        assert not list(victim.under_way())


async def test_a_sent_message_is_reported_before_it_is_timed(monkeypatch):
    answered, seconds = asyncio.Event(), Meter.seconds

    async def late(meter, delivery, *, timeout):
        await answered.wait()
        return await seconds(meter, delivery, timeout=timeout)

    monkeypatch.setattr(Meter, "seconds", late)
    async with mesh(2) as (nodes, inboxes):
        for message in (WHOLE, SOME):
            nodes[0].send(1, message)
        await until(lambda: inboxes[0].sendings == [(1, WHOLE), (1, SOME)])
        assert not inboxes[0].timings
        answered.set()
        await until(lambda: [message for _, message, _ in inboxes[0].timings] == [WHOLE, SOME])


async def test_the_time_that_a_message_takes_is_that_of_its_receiver():
    """What the receiver has not read yet has not left, but for what fits buffers."""
    size = 4_000_000
    big = Message(0, Contribution(1, 32), (torch.zeros(size),))
    async with victim_of_puppet(parameters=size) as (victim, inbox, puppet):
        victim.send(1, big)
        await asyncio.sleep(0.3)
        assert not inbox.sendings
        loop, connection = asyncio.get_running_loop(), puppet.incoming[Channel.DATA]
        loop.add_reader(connection.socket, arrived_at, connection)
        await until(lambda: inbox.timings)
        loop.remove_reader(connection.socket)
        assert inbox.sendings == [(1, big)]
        assert inbox.timings[0][2] > 0.3


@pytest.mark.parametrize(
    ("first", "probed"), [(NONE, True), (Message(0, Contribution(1, 32), (torch.zeros(9000),)), False)]
)
async def test_a_short_first_message_is_followed_by_probes(first, probed):
    """The peer takes it for nothing: see `mesh`, where it is sent, too."""
    carried = on_the_wire(first) + on_the_wire(SOME) + (PROBES if probed else 0)
    async with victim_of_puppet(parameters=9000) as (victim, inbox, puppet):
        for message in (first, SOME):
            victim.send(1, message)
        await until(lambda: len(inbox.timings) == 2)
        assert len(arrived_at(puppet.incoming[Channel.DATA])) == carried


async def test_a_short_message_takes_the_time_of_its_own_bytes(monkeypatch):
    """Bandwidths are a message's bytes over its time: headers and encryption, half of a short one, take none of it."""

    async def seconds(meter, delivery, timeout):
        return delivery.size / 1e6

    monkeypatch.setattr(Meter, "_seconds", seconds)
    async with mesh(2) as (nodes, inboxes):
        for message in (NONE, SOME):  # with a probe, and without
            nodes[0].send(1, message)
        await until(lambda: len(inboxes[0].timings) == 2)
        for _, message, took in inboxes[0].timings:
            assert took == pytest.approx(message.size / 1e6)


def misbehaviour(of):
    """What becomes of a peer that behaves like that: why it was dropped."""

    async def scenario():
        async with victim_of_puppet() as (victim, inbox, puppet):
            await of(puppet)
            await until(lambda: inbox.losses)
            assert not inbox.messages
            # Whatever is sent to it counts as gone.
            victim.send(1, WHOLE)
            await until(lambda: inbox.sendings == [(1, WHOLE)])
            assert not inbox.timings
            return inbox.losses[1]

    return asyncio.run(scenario())


def test_a_peer_that_dies_is_lost():
    async def dies(puppet):
        puppet.leave()

    assert "the connection" in misbehaviour(dies)


async def test_a_peer_that_dies_as_soon_as_it_is_connected_is_lost():
    async with mesh(2) as (nodes, inboxes):
        nodes[0]._sessions[1].close()  # Before it has done anything.
        await until(lambda: 0 in inboxes[1].losses)


@pytest.mark.parametrize("channel", [Channel.DATA, Channel.WEIGHTS])
async def test_a_peer_whose_other_connections_end_is_lost_only_with_its_control_connection(channel):
    async with victim_of_puppet() as (_, inbox, puppet):
        puppet.outgoing[channel].close()
        await asyncio.sleep(0.1)
        assert not inbox.losses
        await puppet.send(Kind.DONE)
        await until(lambda: inbox.news == [(Kind.DONE, 1)])


@pytest.mark.parametrize("channel", Channel)
def test_a_peer_that_sends_garbage_is_dropped(channel):
    async def raves(puppet):
        send_raw(puppet.outgoing[channel], b"x" * 100)

    assert "speaks no TLS of this run (wrong version number)" in misbehaviour(raves)


def test_a_peer_that_announces_too_much_is_dropped():
    async def boasts(puppet):
        connection = puppet.outgoing[Channel.DATA]
        await connection.write((head(Kind.MESSAGE, 2**32 - 1),), None)

    assert "announced 4294967295 bytes" in misbehaviour(boasts)


async def test_a_replayed_record_is_refused():
    async with victim_of_puppet() as (_, inbox, puppet):
        connection = puppet.outgoing[Channel.CONTROL]
        record = record_of(connection, head(Kind.DONE, 0))
        send_raw(connection, record)
        await until(lambda: inbox.news)
        send_raw(connection, record)
        await until(lambda: inbox.losses)
        assert "bad record mac" in inbox.losses[1]
        assert inbox.news == [(Kind.DONE, 1)]


@pytest.mark.parametrize(
    ("kind", "payload", "reason"),
    [
        (Kind.MESSAGE, b"noise", "no message of this run"),
        (Kind.MESSAGE, replace(WHOLE, sender=0).encode(), "in the name of node 0"),
        (Kind.MESSAGE, replace(WHOLE, sender=1, body=NONSENSE).encode(), "it makes no sense"),
        (Kind.MESSAGE, Message(1, Weights(1), (torch.zeros(P + 1),)).encode(), "no message of this run"),
        (Kind.READY, b"", "news of nobody"),
        (Kind.GONE, struct.pack("<I", 2), "news of nobody"),
        (Kind.HELLO, b"", "HELLO out of place"),
    ],
)
def test_a_peer_that_sends_invalid_frames_is_dropped(kind, payload, reason):
    async def errs(puppet):
        await puppet.send(kind, payload)

    assert reason in misbehaviour(errs)


async def test_nothing_from_a_dropped_peer_is_accepted_any_more():
    async with victim_of_puppet() as (_, inbox, puppet):
        await puppet.send(Kind.GONE, b"")
        for _ in range(20):
            await puppet.send(Kind.MESSAGE, replace(WHOLE, sender=1).encode(), channel=Channel.DATA)
        await until(lambda: inbox.losses)
        await asyncio.sleep(0.2)
        assert len(inbox.messages) < 20


async def test_a_peer_that_falls_silent_is_dropped():
    async with victim_of_puppet(silence=0.2) as (_, inbox, _):
        await until(lambda: inbox.losses)
        assert "silent" in inbox.losses[1]


@pytest.mark.parametrize("body", [Contribution(1, 32), Weights(1)], ids=["data", "weights"])
async def test_a_peer_that_receives_nothing_is_dropped(body):
    size = 4_000_000
    big = Message(0, body, (torch.zeros(size),))
    async with victim_of_puppet(parameters=size, silence=1.0) as (victim, inbox, puppet):
        victim.send(1, big)
        while not inbox.losses:
            await puppet.send(Kind.ALIVE)
            await asyncio.sleep(0.05)
        assert "took nothing" in inbox.losses[1]
        await until(lambda: inbox.sendings == [(1, big)] * (body.channel is Channel.DATA))


async def test_idle_peers_stay():
    async with mesh(2, silence=2.0) as (nodes, inboxes):
        await asyncio.sleep(2.5)
        nodes[0].send(1, ASK)
        await until(lambda: inboxes[1].messages)
        assert not inboxes[0].losses | inboxes[1].losses
