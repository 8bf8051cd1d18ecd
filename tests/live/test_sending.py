"""Both ends of a message in datagrams, back to back over a made-up network that loses, repeats and reorders."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.bounded_loss.assembling import Assembler
from dlion_sim.bounded_loss.bounds import Bounds
from dlion_sim.bounded_loss.cutting import PAYLOAD, Cutter
from dlion_sim.learning.flat import Layout
from dlion_sim.live.datagrams import Counts, Feedback, Key, Packet, Sort
from dlion_sim.live.frames import PeerError
from dlion_sim.live.notices import Bitmap, Notice, Probe, Start, Stop, parse
from dlion_sim.live.receiving import Receiver, Rules
from dlion_sim.live.sending import Sender
from dlion_sim.protocol.messages import Channel, Contribution, Message
from dlion_sim.scenario import Dlcp

P = 40 * 356 + 100
LAYOUT = Layout(("first", "second"), ((P // 3,), (P - P // 3,)))
DENSE = Message(1, Contribution(3, 32), (torch.arange(1, P + 1, dtype=torch.float32),))
CHOSEN = torch.arange(0, P, 3, dtype=torch.int32)
SPARSE = Message(1, Contribution(3, 32), (CHOSEN, CHOSEN + 0.5))
STRETCH = Message(1, Contribution(3, 32, None, 1000), (torch.arange(1.0, 1001.0),))


class Pair:
    """Node 1 sends node 0 messages; what each end tells the other is carried a step later."""

    def __init__(self, dlcp: Dlcp, rng: random.Random, loss: float) -> None:
        self.rng, self.loss = rng, loss
        self.key = Key(Sort.PACKET, b"k" * 32)
        self.told: list[Notice] = []
        self.arrived: list[Message] = []
        self.counts, self.answered = Counts(), Counts()

        bounds, assembler = Bounds(dlcp, LAYOUT, 2), Assembler(dlcp, LAYOUT, 2)
        cutter, tell = Cutter(dlcp, LAYOUT, 2), self.told.append
        self.sender = Sender(1, Channel.DATA, self.key, cutter, dlcp, 0.1, self.answered, tell)
        rules = Rules(dlcp, LAYOUT, 2, 2, bounds, assembler)
        self.receiver = Receiver(0, 1, Channel.DATA, rules, self.counts, tell, self.arrived.append)

    def carry(self, message: Message, now: float = 0.0):
        """What became of a message, by its sender, and when."""
        self.sender.begin(message, now)
        flying: list[bytes] = []
        for _ in range(100_000):
            now += 0.01
            told, self.told[:] = self.told[:], []
            for notice in told:
                match parse(b"".join(notice.payload().buffers)):
                    case Start() as start:
                        self.receiver.start(start)
                    case Probe() as probe:
                        self.receiver.probe(probe)
                    case Bitmap() as bitmap:
                        self.sender.missing(bitmap, now)
                    case Stop() as stop:
                        return self.sender.stopped(stop, now)
            while datagram := self.sender.next(now):
                flying += [datagram[0]] * self.rng.choice([1, 1, 1, 2])
            self.rng.shuffle(flying)
            while flying and self.rng.random() < 0.9:
                self.deliver(flying.pop(), now)
            if self.sender.deadline <= now:
                self.sender.expire(now)
        raise AssertionError("it never ends")

    def deliver(self, data: bytes, now: float) -> None:
        if self.rng.random() < self.loss:
            return
        payload = self.key.opened(memoryview(data))
        self.receiver.take(Packet.parse(data), payload, self.rng.random() < 0.1, now)
        if (header := self.receiver.feedback()) and self.rng.random() >= self.loss:
            self.sender.heard(Feedback.parse(header), now)


@pytest.mark.parametrize("message", [DENSE, SPARSE, STRETCH], ids=["dense", "sparse", "stretch"])
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.5]), st.booleans())
def test_without_a_bound_all_arrives_whatever_the_network_does(message, seed, loss, stop_early):
    pair = Pair(Dlcp(loss_bound=0.0, stop_early=stop_early), random.Random(seed), loss)
    for count in (1, 2):
        carried = pair.carry(message)
        received = pair.arrived[-1]
        assert len(pair.arrived) == count
        assert (received.sender, received.body) == (message.sender, message.body)
        assert all(map(torch.equal, received.tensors, message.tensors))
        assert carried.loss.lost == 0
        assert carried.seconds is None or carried.seconds > 0


@pytest.mark.parametrize("message", [DENSE, SPARSE], ids=["dense", "sparse"])
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.2, 0.5]))
def test_within_the_bound_some_may_be_missing_and_both_ends_agree_on_what(message, seed, loss):
    pair = Pair(Dlcp(loss_bound=0.25), random.Random(seed), loss)
    told = pair.carry(message).loss
    size = message.size - len(message.header)
    assert 0 <= told.lost <= 0.25 * size
    received = pair.arrived[0]
    if len(message.tensors) == 1:
        (values,), (sent,) = received.tensors, message.tensors
        assert torch.equal(values[values != 0], sent[values != 0])
        missing = int((values == 0).sum()) * 4
    else:
        indices, values = received.tensors
        assert torch.equal(values, indices + 0.5)
        missing = 8 * (len(message.tensors[0]) - len(indices))
    assert missing == told.lost
    assert sum(part.bytes for part in told.parts) == size
    assert sum(part.lost for part in told.parts) == told.lost
    assert {part.variable for part in told.parts} == {0, 1}


def test_what_is_sent_again_and_what_is_saved_is_told():
    pair = Pair(Dlcp(loss_bound=0.0), random.Random(1), 0.3)
    assert pair.carry(DENSE).loss.resent >= 0.2 * 4 * P
    pair = Pair(Dlcp(loss_bound=0.5, initial_window=4), random.Random(1), 0.0)
    told = pair.carry(DENSE).loss
    assert 0 < told.saved <= told.lost


def start(pair, message, number=1, channel=Channel.DATA, header=None):
    pair.receiver.start(Start(channel, number, message.header if header is None else header))


OTHERS = Message(0, DENSE.body, DENSE.tensors)
PAST_THE_END = Message(1, Contribution(3, 32, None, P - 1), (torch.zeros(2),))
UNEVEN = Message(1, Contribution(3, 32), (CHOSEN, torch.zeros(3)))
HUGE = Message(1, Contribution(3, 32), (torch.zeros(1).expand(2**33),))


@pytest.mark.parametrize(
    ("message", "how"),
    [
        (OTHERS, {}),
        (PAST_THE_END, {}),
        (UNEVEN, {}),
        (HUGE, {}),
        (Message(1, Contribution(3, 32), (torch.zeros(0),)), {}),
        (DENSE, {"number": 2}),
        (DENSE, {"header": DENSE.header + b"more"}),
        (DENSE, {"header": b""}),
    ],
    ids=["in another's name", "past the end", "uneven", "huge", "empty", "out of turn", "longer", "none"],
)
def test_what_cannot_come_is_not_announced(message, how):
    pair = Pair(Dlcp(), random.Random(0), 0.0)
    with pytest.raises(PeerError, match="announced"):
        start(pair, message, **how)
    start(pair, DENSE)


def test_packets_that_cannot_be_are_refused_and_those_of_other_messages_left_alone():
    pair = Pair(Dlcp(), random.Random(0), 0.0)
    start(pair, DENSE)
    full = memoryview(bytes(PAYLOAD))
    for packet, payload in ((41, full), (2**32 - 1, full), (0, full[:-4]), (40, full), (0, full[:0])):
        pair.receiver.take(Packet(1, 1, 1, packet, packet, 0.0), payload, False, 0.0)
    assert pair.counts == Counts(refused=5)
    for message in (0, 2, 2**32 - 1):
        pair.receiver.take(Packet(1, 1, message, 0, 0, 0.0), full, False, 0.0)
    assert pair.counts == Counts(refused=5, unannounced=3)
    for _ in range(2):
        pair.receiver.take(Packet(1, 1, 1, 0, 7, 0.0), full, False, 0.0)
    assert pair.counts == Counts(refused=6, unannounced=3)
    assert Feedback.parse(pair.receiver.feedback()).received == 1


def test_a_few_packets_may_come_before_their_message_is_announced():
    pair = Pair(Dlcp(loss_bound=0.0), random.Random(0), 0.0)
    pair.sender.begin(STRETCH, 0.0)
    packets = [pair.sender.next(0.0)[0] for _ in range(3)]
    for data in packets:
        pair.deliver(data, 0.0)
    assert pair.counts == Counts()
    pair.receiver.start(pair.told[0])
    assert torch.equal(pair.arrived[0].tensors[0], STRETCH.tensors[0])
    # But only so many.
    for number in range(100):
        pair.receiver.take(Packet(1, 1, 2, 0, number, 0.0), memoryview(bytes(PAYLOAD)), False, 0.0)
    assert pair.counts.unannounced == 100 - 64


@pytest.mark.parametrize(
    "told",
    [
        {"highest": 5},
        {"highest": 3},
        {"received": 6},
        {"received": 0},
        {"marked": 6},
        {"message": 2},
        {"message": 0},
    ],
    ids=str,
)
def test_feedback_that_cannot_be_changes_nothing(told):
    pair = Pair(Dlcp(initial_window=5), random.Random(0), 0.0)
    pair.sender.begin(DENSE, 0.0)
    while pair.sender.next(0.0):
        pass
    before = pair.sender._record.copy()
    pair.sender.heard(Feedback(1, 0, 1, 4, 5, 0, 0.0)._replace(**told), 1.0)
    assert pair.sender._record.tobytes() == before.tobytes()
    assert pair.answered.refused + pair.answered.unannounced == 1


@pytest.mark.parametrize("clock", [float("nan"), float("inf"), -1e300, 2.0])
def test_a_clock_that_cannot_be_tells_no_round_trip(clock):
    pair = Pair(Dlcp(), random.Random(0), 0.0)
    pair.sender.begin(DENSE, 0.0)
    while pair.sender.next(0.0):
        pass
    pair.sender.heard(Feedback(1, 0, 1, 3, 4, 0, clock), 1.0)
    assert pair.sender._record["round_trip"] == 0.1
    assert pair.sender._record["received"] == 4


def test_priorities_and_protection_are_in_the_ip_header():
    pair = Pair(Dlcp(drop="layer", congestion_control="none"), random.Random(0), 0.0)
    pair.sender.begin(DENSE, 0.0)
    found = [tos for _, tos in iter(lambda: pair.sender.next(0.0), None)]
    # The first variable is a front layer, which is dropped early; the second one has the fifth of eight priorities.
    assert sorted(set(found)) == [3 << 2, (4 * 4 + 3) << 2 | 2]
    assert found[0] == 3 << 2


@pytest.mark.parametrize(("entries", "tells"), [(P, True), (1000, True), (700, False)])
def test_how_long_the_link_took_is_told_by_the_packets_after_the_first(entries, tells):
    """The first one tells of a round trip only. A byte takes a millisecond here."""
    message = Message(1, Contribution(3, 32), (torch.ones(entries),))
    pair = Pair(Dlcp(loss_bound=0.0, congestion_control="none"), random.Random(0), 0.0)
    pair.sender.begin(message, 0.0)
    pair.receiver.start(pair.told[0])
    at = 100.0
    for number, (datagram, _) in enumerate(iter(lambda: pair.sender.next(0.0), None)):
        payload = pair.key.opened(memoryview(datagram))
        at += 1e-3 * len(payload) if number else 0.0
        pair.receiver.take(Packet.parse(datagram), payload, False, at)
    assert pair.sender.stopped(pair.told[-1], 1.0).seconds == (pytest.approx(1e-3 * message.size) if tells else None)
