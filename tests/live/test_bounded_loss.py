"""Messages in datagrams between nodes: what arrives of them, and that nobody else's datagrams change anything."""

import asyncio
import random
import socket
import struct
from dataclasses import replace

import pytest
import torch

from dlion_sim.live.datagram_socket import DatagramSocket
from dlion_sim.live.datagrams import Feedback, Key, Packet, Sort
from dlion_sim.live.frames import Kind
from dlion_sim.live.notices import Notice, of_count
from dlion_sim.live.sockets import FrameReader
from dlion_sim.protocol.messages import Channel, Contribution, Message, Weights
from dlion_sim.scenario import Dlcp
from dlion_sim.transport.cutting import PAYLOAD
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

        def lose(self, buffers, tos, address):
            return rng.random() < part or send(self, buffers, tos, address)

        monkeypatch.setattr(DatagramSocket, "send", lose)

    return begin


@pytest.mark.parametrize("part", [0.0, 0.1, 0.4])
def test_without_a_bound_messages_arrive_in_order_and_as_they_were(lossy, part):
    lossy(part)

    async def scenario():
        async with mesh(2, dlcp=ALL, parameters=P) as (nodes, inboxes):
            for message in (WHOLE, SOME, NONE, WEIGHTS, WHOLE):
                nodes[0].send(1, message)
            nodes[1].send(0, replace(WHOLE, sender=1))
            await until(lambda: len(inboxes[1].messages) == 5 and inboxes[0].messages)
            data = [message for message in inboxes[1].messages if message.body.channel is Channel.DATA]
            for sent, received in zip((WHOLE, SOME, NONE, WHOLE), data, strict=True):
                assert (received.sender, received.body) == (sent.sender, sent.body)
                assert all(map(torch.equal, received.tensors, sent.tensors))
            await until(lambda: len(inboxes[0].timings) == 4 and len(inboxes[0].departed) == 5)
            assert len(inboxes[0].sendings) == 4
            assert all(peer == 1 and seconds > 0 for peer, _, seconds in inboxes[0].timings)
            assert not any(inbox.losses for inbox in inboxes)

    asyncio.run(scenario())


def test_within_the_bound_a_message_is_there_though_some_is_lost(lossy):
    lossy(0.05)

    async def scenario():
        async with mesh(2, dlcp=Dlcp(loss_bound=0.1), parameters=P) as (nodes, inboxes):
            nodes[0].send(1, WHOLE)
            await until(lambda: inboxes[1].messages and inboxes[0].transfers)
            (values,) = inboxes[1].messages[0].tensors
            lost = inboxes[0].transfers[0].loss.lost
            assert 0 < lost <= 0.1 * 4 * P
            assert int((values == 0).sum()) * 4 == lost
            assert torch.equal(values[values != 0], WHOLE.tensors[0][values != 0])

    asyncio.run(scenario())


class Forger:
    """A stranger who sees what goes to one node, and sends it more of that kind."""

    def __init__(self, monkeypatch) -> None:
        self.rng = random.Random(1)
        self.seen: list[bytes] = []
        self.sent = 0
        self._victim = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        send = DatagramSocket.send

        def overheard(datagrams, buffers, tos, address):
            self._victim = self._victim or address
            if address == self._victim:
                self.seen.append(b"".join(buffers))
            return send(datagrams, buffers, tos, address)

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
                return real[:32] + rng.randbytes(16) + real[48:]
            case 5:  # of another session
                header = Packet(Channel.DATA, 1, rng.randrange(10), rng.randrange(60), rng.randrange(60), 0.0).header()
                return Key(Sort.PACKET, b"another").seal(header, (entries := rng.randbytes(PAYLOAD),)) + entries
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
        return node._datagrams._socket._socket.getsockname() == self._victim


def test_ten_thousand_hostile_datagrams_change_nothing(monkeypatch):
    """Neither what arrives, nor who is a peer. Most are refused; those sent again of messages that are over, left alone."""
    messages = [
        Message(rank, Contribution(count, 32), (torch.randn(P, generator=torch.Generator().manual_seed(count)),))
        for rank in (0, 1)
        for count in range(20)
    ]
    forger = Forger(monkeypatch)

    async def scenario():
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

    asyncio.run(scenario())
