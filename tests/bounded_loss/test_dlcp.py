"""DLCP's endpoints joined by networks that lose, delay, reorder and duplicate."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.bounded_loss import dlcp

SIZE = 1424


@dataclass
class Ends:
    """A sender and a receiver of a message of so many packets in groups, of each of which a part may be missing."""

    packets: int
    bound: float = 0.0
    groups: int = 1
    stops_early: bool = True
    window: float = 10.0
    round_trip: float = 0.1
    sends: Counter[int] = field(default_factory=Counter)
    stops: int = 0
    probes: int = 0

    def __post_init__(self) -> None:
        self.sender, self.receiver = np.zeros(1, dlcp.SENDER)[0], np.zeros(1, dlcp.RECEIVER)[0]
        self.order = np.random.default_rng(0).permutation(self.packets).astype(np.int32)
        self.known, self.have = np.zeros((2, self.packets), np.uint8)
        self.group = (np.arange(self.packets) % self.groups).astype(np.int32)
        self.sizes = np.full(self.packets, SIZE)
        self.missing = np.zeros(self.groups, np.int64)
        self.allowed = np.floor(self.bound * np.bincount(self.group, self.sizes) + 1e-6).astype(np.int64)
        dlcp.open_sender(self.sender, self.window, self.round_trip, 0.01)
        self.begin(0.0)

    def begin(self, now: float) -> None:
        self.known[:] = self.have[:] = 0
        dlcp.begin(self.sender, self.packets, now)
        dlcp.expect(self.receiver, self.group, self.sizes, self.missing, self.allowed, self.stops_early)

    def take(self, now: float) -> tuple[int, int]:
        """What to send, and its send number."""
        number = int(self.sender["sent"])
        upcoming = dlcp.upcoming(self.sender, self.order, self.known, now)
        packet = dlcp.take(self.sender, self.order, self.known, now)
        assert packet == upcoming
        if packet >= 0:
            assert not self.known[packet], "what the receiver has is not sent again"
            self.sends[packet] += 1
        self.probes += packet == dlcp.PROBE
        return packet, number

    def accept(self, packet: int, number: int, marked: bool = False) -> int:
        arrays = self.have, self.group, self.sizes, self.missing, self.allowed
        flags = dlcp.accept(self.receiver, *arrays, packet, number, marked)
        self.stops += bool(flags & dlcp.STOP)
        return flags

    def probed(self, sent: int) -> int:
        flags = dlcp.probed(self.receiver, self.have, sent)
        self.stops += bool(flags & dlcp.STOP)
        return flags

    @property
    def lost(self) -> float:
        return 1 - self.have.mean()

    @property
    def resent(self) -> int:
        return sum(self.sends.values()) - len(self.sends)


def join(ends: Ends, rng, *, loss=0.0, twice=0.0, lost_feedback=0.0, jitter=0.0, marks=0.0, latency=0.05):
    """Let both talk until the sender has heard STOP; the seconds that takes. Control frames are never lost."""
    event_queue, numbers, now = [], count(), ends.sender["since"]
    spacing, events = 1e-4, 0

    def plan(delay, call, *arguments):
        heapq.heappush(event_queue, (now + delay, next(numbers), call, arguments))

    def pull():
        packet, number = ends.take(now)
        if packet == dlcp.PROBE:
            plan(latency, probe, int(ends.sender["sent"]))
        elif packet >= 0:
            for _ in range(1 + (rng.random() < twice)):
                if rng.random() >= loss:
                    plan(latency + jitter * rng.exponential(), arrive, packet, number, rng.random() < marks, now)
            plan(spacing, pull)
        deadline = dlcp.deadline(ends.sender)
        if deadline < math.inf:
            plan(max(0.0, deadline - now), expire)

    def arrive(packet, number, marked, sent_at):
        flags = ends.accept(packet, number, marked)
        if flags & dlcp.FEEDBACK and rng.random() >= lost_feedback:
            told = (int(ends.receiver[each]) for each in ("highest", "received", "marked"))
            plan(latency + jitter * rng.exponential(), feedback, *told, sent_at)
        if flags & dlcp.STOP:
            plan(latency, stop)

    def feedback(highest, received, marked, sent_at):
        dlcp.feedback(ends.sender, highest, received, marked, now - sent_at, now)
        pull()

    def probe(sent):
        flags = ends.probed(sent)
        if flags == dlcp.STOP:
            plan(latency, stop)
        elif flags == dlcp.BITMAP:
            plan(latency, bitmap, ends.have.copy())

    def bitmap(have):
        dlcp.bitmap(ends.sender, ends.known, have, now)
        pull()

    def stop():
        dlcp.stop(ends.sender)

    def expire():
        if dlcp.expire(ends.sender, now):
            pull()

    began = now
    pull()
    while ends.sender["phase"] != dlcp.IDLE:
        assert event_queue, "nothing is to happen any more"
        assert (events := events + 1) < 100_000
        now, _, call, arguments = heapq.heappop(event_queue)
        call(*arguments)
    return now - began


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 120),
    st.sampled_from([0.0, 0.01, 0.1, 0.5]),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([3.0, 10.0, math.inf]),
    st.fixed_dictionaries(
        {
            "loss": st.sampled_from([0.0, 0.02, 0.3, 0.7]),
            "twice": st.sampled_from([0.0, 0.3]),
            "lost_feedback": st.sampled_from([0.0, 0.3, 1.0]),
            "jitter": st.sampled_from([0.0, 0.001, 0.1]),
            "marks": st.sampled_from([0.0, 0.2]),
        }
    ),
)
def test_whatever_the_network_does_enough_arrives(seed, packets, bound, groups, stops_early, window, network):
    ends = Ends(packets, bound, min(groups, packets), stops_early, window)
    join(ends, np.random.default_rng(seed), **network)
    missing = np.bincount(ends.group, SIZE * (1 - ends.have.astype(np.int64)), ends.groups)
    assert (missing == ends.missing).all()
    assert (missing <= ends.allowed).all()
    assert ends.stops == 1
    if not network["loss"] and not bound:
        assert ends.have.all()
    if not network["loss"] and not network["jitter"] and not network["lost_feedback"]:
        assert not ends.resent


@pytest.mark.parametrize("loss", [0.0, 0.03, 0.07])
def test_losses_below_the_bound_are_not_made_good(loss):
    ends = Ends(1000, 0.1)
    join(ends, np.random.default_rng(1), loss=loss)
    assert ends.resent == 0
    assert ends.lost == pytest.approx(0.1)
    assert ends.probes == 0


def test_without_an_early_stop_all_is_sent_once():
    ends = Ends(1000, 0.1, stops_early=False)
    join(ends, np.random.default_rng(1), loss=0.03)
    assert (sum(ends.sends.values()), ends.resent, ends.probes) == (1000, 0, 1)
    assert 0.01 < ends.lost < 0.05


def test_without_a_bound_all_arrives():
    ends = Ends(1000)
    join(ends, np.random.default_rng(1), loss=0.3, jitter=0.01)
    assert ends.have.all()


def passes(bound, loss, packets, rng):
    """How many passes a message takes, and how many packets are sent until the receiver has enough."""
    ends = Ends(packets, bound, window=math.inf)
    number, sent, now = 1, 0, 0.0
    while True:
        packet, send_number = ends.take(now)
        if packet == dlcp.WAIT:
            now = dlcp.deadline(ends.sender)
            assert dlcp.expire(ends.sender, now)
            continue
        if packet == dlcp.PROBE:
            assert ends.probed(send_number) == dlcp.BITMAP
            dlcp.bitmap(ends.sender, ends.known, ends.have, now)
            number += 1
            continue
        sent += 1
        if rng.random() >= loss and ends.accept(packet, send_number) & dlcp.STOP:
            return number, sent


@pytest.mark.parametrize(
    ("bound", "loss"), [(0.1, 0.02), (0.1, 0.2), (0.1, 0.5), (0.03, 0.3), (0.01, 0.5), (0.05, 0.05 * 0.8)]
)
def test_as_many_passes_and_packets_as_the_fluid_model_has(bound, loss):
    """Passes n = ceil(ln p / ln l); sent are the n - 1 whole ones, and of the last (l^(n-1) - p) / (1 - l)."""
    rng, packets = np.random.default_rng(2), 8000
    found = [passes(bound, loss, packets, rng) for _ in range(5)]
    expected = 1 if loss <= bound else math.ceil(math.log(bound) / math.log(loss))
    sent = sum(loss**number for number in range(expected - 1)) + (loss ** (expected - 1) - bound) / (1 - loss)
    assert [number for number, _ in found] == [expected] * 5
    assert np.mean([total for _, total in found]) == pytest.approx(sent * packets, rel=0.02)


def test_the_probe_waits_for_packets_under_way():
    ends = Ends(4, window=math.inf)
    taken = [ends.take(0.0) for _ in range(4)]
    assert ends.take(0.0)[0] == dlcp.WAIT
    for packet, number in taken[:3]:
        ends.accept(packet, number)
    assert taken[3][1] == ends.receiver["last"]
    dlcp.feedback(ends.sender, 2, 3, 0, 0.1, 0.1)
    assert ends.take(0.1)[0] == dlcp.WAIT
    later = dlcp.deadline(ends.sender)
    assert 0.1 < later < 0.5
    assert dlcp.expire(ends.sender, later)
    assert ends.take(later)[0] == dlcp.PROBE
    assert ends.take(later)[0] == dlcp.WAIT, "once"
    assert ends.probed(4) == dlcp.BITMAP
    dlcp.bitmap(ends.sender, ends.known, ends.have, later)
    assert ends.take(later) == (taken[3][0], 4)


def test_after_all_feedback_the_probe_is_sent_at_once():
    ends = Ends(4, window=math.inf)
    taken = [ends.take(0.0) for _ in range(4)]
    flags = [ends.accept(*taken[number]) for number in (0, 1, 3)]
    assert [bool(each & dlcp.FEEDBACK) for each in flags] == [False, True, True]
    dlcp.feedback(ends.sender, 3, 3, 0, 0.1, 0.1)
    assert ends.take(0.1)[0] == dlcp.PROBE


def test_the_last_packet_of_a_pass_is_answered_at_once():
    ends = Ends(3)
    assert [bool(ends.accept(number, number) & dlcp.FEEDBACK) for number in (0, 2)] == [False, True]
    assert ends.probed(3) == dlcp.BITMAP
    assert ends.accept(1, 3) & dlcp.FEEDBACK
    longer = Ends(6)
    longer.accept(0, 0)
    longer.accept(5, 5)
    assert longer.probed(6) == dlcp.BITMAP
    assert [bool(longer.accept(each, each + 5) & dlcp.FEEDBACK) for each in (1, 2, 3, 4)] == [False, True, False, True]
    in_turn = Ends(3)
    assert [bool(in_turn.accept(number, number) & dlcp.FEEDBACK) for number in range(3)] == [False, True, True]


@pytest.mark.parametrize(("received", "marked"), [(15, 0), (20, 5), (17, 2)])
def test_losses_and_marks_alike_make_the_window_smaller(received, marked):
    ends = Ends(100, window=20)
    for _ in range(20):
        ends.take(0.0)
    dlcp.feedback(ends.sender, 19, received, marked, 0.1, 0.1)
    alpha = 1 + (5 / 20 - 1) / 16
    assert ends.sender["alpha"] == pytest.approx(alpha)
    assert ends.sender["window"] == pytest.approx(20 * (1 - alpha / 2))


def test_what_was_only_late_is_lost_once_at_most():
    ends = Ends(100, window=20)
    for _ in range(20):
        ends.take(0.0)
    dlcp.feedback(ends.sender, 9, 8, 0, 0.1, 0.1)
    dlcp.feedback(ends.sender, 9, 10, 0, 0.1, 0.1)
    assert (ends.sender["congested"], ends.sender["lost"]) == (2, 0)
    dlcp.feedback(ends.sender, 19, 19, 0, 0.1, 0.1)
    assert ends.sender["alpha"] == pytest.approx(1 + (3 / 20 - 1) / 16)


def test_an_answer_leaves_nothing_under_way():
    ends = Ends(4, window=4)
    for now in (0.0, 1.0):
        assert [ends.take(now)[0] for _ in range(5)] == [*ends.order, dlcp.WAIT]
        later = dlcp.deadline(ends.sender)
        assert dlcp.expire(ends.sender, later)
        assert ends.take(later)[0] == dlcp.PROBE
        dlcp.bitmap(ends.sender, ends.known, ends.have, 1.0)


def test_feedback_comes_at_once_where_a_mark_or_a_gap_does():
    ends = Ends(20)
    flags = [
        bool(ends.accept(number, number, marked) & dlcp.FEEDBACK)
        for number, marked in [(0, False), (1, False), (2, True), (3, True), (4, True), (6, True), (5, True), (7, True)]
    ]
    assert flags == [False, True, True, False, True, True, True, False]


def test_a_probe_that_is_not_answered_is_sent_again_ever_later():
    ends = Ends(1)
    assert ends.take(0.0) == (0, 0)
    asked = []
    for _ in range(5):
        now = dlcp.deadline(ends.sender)
        assert not dlcp.expire(ends.sender, now - 1e-6)
        assert dlcp.expire(ends.sender, now)
        assert ends.take(now)[0] == dlcp.PROBE
        asked.append(now)
    waits = np.diff(asked)
    assert waits[1:] == pytest.approx(2 * waits[:-1])


def test_a_second_answer_does_not_begin_another_pass():
    ends = Ends(10, window=math.inf)
    for _ in range(10):
        ends.take(0.0)
    dlcp.feedback(ends.sender, 9, 3, 0, 0.1, 0.1)
    assert ends.take(0.1)[0] == dlcp.PROBE
    arrived = np.zeros(10, np.uint8)
    taken = []
    for newly in ([], [], ends.order[3:]):
        arrived[newly] = 1
        dlcp.bitmap(ends.sender, ends.known, arrived, 0.2)
        taken.append(ends.take(0.2)[0])
    assert taken == list(ends.order[:3])
    assert ends.take(0.2)[0] == dlcp.WAIT


def test_packets_after_stop_change_nothing():
    ends = Ends(10, 0.5)
    flags = [ends.accept(number, number) for number in range(10)]
    assert [bool(each & dlcp.STOP) for each in flags] == [number == 4 for number in range(10)]
    assert flags[5:] == [0] * 5
    assert ends.have.sum() == 5
    assert ends.probed(10) == 0


def test_a_silent_receiver_makes_the_sender_begin_again_with_a_small_window():
    ends = Ends(100, window=10)
    assert [ends.take(0.0)[0] >= 0 for _ in range(11)] == [True] * 10 + [False]
    now = dlcp.deadline(ends.sender)
    assert now == pytest.approx(0.1 + 4 * 0.05)
    assert dlcp.expire(ends.sender, now)
    assert [ends.take(now)[0] >= 0 for _ in range(4)] == [True] * 3 + [False]
    assert dlcp.deadline(ends.sender) - now == pytest.approx(2 * 0.3)


def test_the_timeout_begins_when_a_delayed_packet_is_sent():
    """The machine may have sent others' packets before it, for longer than a timeout."""
    ends = Ends(100, window=3)
    assert [ends.take(now)[0] >= 0 for now in (0.0, 0.0, 60.0)] == [True] * 3
    assert dlcp.deadline(ends.sender) == pytest.approx(60 + 0.1 + 4 * 0.05)


def test_the_next_message_goes_on_with_the_window_of_the_last():
    ends = Ends(200)
    join(ends, np.random.default_rng(0))
    window = ends.sender["window"]
    assert window > 100
    assert ends.sender["round_trip"] == pytest.approx(0.1, rel=0.1)
    ends.begin(10.0)
    assert sum(ends.take(10.0)[0] >= 0 for _ in range(200)) == int(window)


def test_feedback_on_packets_that_were_never_sent_is_ignored():
    ends = Ends(10)
    ends.take(0.0)
    before = ends.sender.copy()
    dlcp.feedback(ends.sender, 5, 5, 0, 0.1, 0.1)
    assert ends.sender == before
