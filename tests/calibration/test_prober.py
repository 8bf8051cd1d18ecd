"""Nodes that measure, joined by a list: what they find is what the list's links have, and nonsense changes nothing."""

from __future__ import annotations

import heapq
from collections import defaultdict
from itertools import count, permutations

import pytest
import torch

from dlion_sim.calibration.probe import Intake, Load, Measured, PathFound, Ping, Pong, Received, Turn
from dlion_sim.calibration.prober import Prober, one_by_one, tournament
from dlion_sim.live.connection import frame_bytes
from dlion_sim.live.frames import Payload
from dlion_sim.protocol.events import Send
from dlion_sim.protocol.messages import Channel, MalformedMessageError, Message, decode
from dlion_sim.scenario.matrix import FRAME

BPS = {(0, 1): 50e6, (1, 0): 5e6, (0, 2): 20e6, (2, 0): 10e6, (1, 2): 3e5, (2, 1): 200e6}
DELAYS = {frozenset((0, 1)): 0.0, frozenset((0, 2)): 0.01, frozenset((1, 2)): 0.03}
"""Seconds, one way."""


class Links:
    """Carries messages at the links' bandwidths and delays, in virtual time."""

    def __init__(self, probers: list[Prober]) -> None:
        self.probers = probers
        self.now = 0.0
        self.carried: list[tuple[int, int, Message]] = []
        self._event_queue: list[tuple] = []
        self._order = count()
        self._free = defaultdict(float)

    def send(self, sender: int, sends: list[Send]) -> None:
        for send in sends:
            pair, message = (sender, send.peer), send.message
            seconds = 8 * frame_bytes(Payload(message.buffers)) * FRAME / BPS[pair]
            lane = (*pair, message.body.channel)
            left = self._free[lane] = max(self.now, self._free[lane]) + seconds
            if message.body.channel is Channel.DATA:
                self._plan(left, lambda pair=pair: self.send(pair[0], self.probers[pair[0]].left(pair[1], self.now)))
            self._plan(left + DELAYS[frozenset(pair)], lambda pair=pair, message=message: self._arrive(pair, message))

    def run(self) -> None:
        while self._event_queue:
            self.now, _, what = heapq.heappop(self._event_queue)
            what()

    def _arrive(self, pair: tuple[int, int], message: Message) -> None:
        if message.body.channel is Channel.CONTROL:
            assert decode(message.encode(), workers=3, parameters=1 << 20) == message
        self.carried.append((*pair, message))
        self.send(pair[1], self.probers[pair[1]].arrived(message, self.now))

    def _plan(self, at: float, what) -> None:
        heapq.heappush(self._event_queue, (at, next(self._order), what))


@pytest.mark.parametrize("rounds", [one_by_one(3), tournament("abc")], ids=["one by one", "tournament"])
def test_measured_paths_are_those_of_the_links(rounds) -> None:
    probers = [Prober(rank, 3, rounds if rank == 0 else (), 1.0, lambda peer: 0.4 * peer) for rank in range(3)]
    links = Links(probers)
    links.send(0, probers[0].begin(0.0))
    links.run()
    assert probers[0].is_over
    assert set(probers[0].paths) == set(permutations(range(3), 2))
    for pair, path in probers[0].paths.items():
        assert path.bps == pytest.approx(BPS[pair], rel=0.001)
        assert path.round_trip == pytest.approx(2 * DELAYS[frozenset(pair)], abs=0.01)
        assert path.median_round_trip >= path.round_trip
        assert path.acknowledgements == 0.4 * pair[1]
    slow = [body for *pair, message in links.carried if pair == [1, 2] and isinstance(body := message.body, Load)]
    assert slow[-1] == Load(True, True)
    assert links.now < 6 * 6, "a slow link takes no longer"


def on_its_turn() -> Prober:
    prober = Prober(1, 3, (), 1.0, lambda peer: 0.5)
    assert prober.arrived(Message(0, Turn(2)), 0.0) == [Send(2, Message(1, Ping(0)))]
    return prober


ONE = (torch.ones(1),)


@pytest.mark.parametrize(
    "message",
    [
        Message(2, Turn(0)),  # only node 0 says whose turn it is
        Message(0, Turn(0)),  # has its turn already
        Message(0, Pong(0)),  # was not asked
        Message(2, Pong(1)),
        Message(2, Received(1, 1.0)),  # before anything was sent
        Message(0, Received(1, 1.0)),
        Message(2, Load(True, False), ONE),  # nothing came before
        Message(2, Measured(0, 1e6, 0.1, 0.1, 0.5)),  # is for node 0
    ],
)
def test_invalid_messages_are_refused_and_change_nothing(message: Message) -> None:
    prober = on_its_turn()
    with pytest.raises(MalformedMessageError):
        prober.arrived(message, 1.0)
    assert prober.arrived(Message(2, Pong(0)), 0.5) == [Send(2, Message(1, Ping(1)))]


@pytest.mark.parametrize("receiver", [1, 3, 10**6])
def test_there_is_no_path_to_oneself_or_an_unknown_node(receiver: int) -> None:
    with pytest.raises(MalformedMessageError):
        Prober(1, 3, (), 1.0, lambda peer: 0.5).arrived(Message(0, Turn(receiver)), 0.0)


def test_node_0_refuses_paths_that_were_not_requested() -> None:
    first = Prober(0, 3, [[(1, 2)]], 1.0, lambda peer: 0.5)
    assert first.begin(0.0) == [Send(1, Message(0, Turn(2)))]
    for sender, receiver in [(2, 1), (1, 0)]:
        with pytest.raises(MalformedMessageError):
            first.arrived(Message(sender, Measured(receiver, 1e6, 0.1, 0.1, 0.5)), 1.0)
    assert first.arrived(Message(1, Measured(2, 1e6, 0.1, 0.2, 0.5)), 1.0) == []
    assert first.paths == {(1, 2): PathFound(1e6, 0.1, 0.2, 0.5)}
    assert first.is_over
    with pytest.raises(MalformedMessageError):
        first.arrived(Message(1, Measured(2, 1e6, 0.1, 0.2, 0.5)), 1.0)


@pytest.mark.parametrize(
    "body",
    [
        Measured(2, float("nan"), 0.1, 0.1, 0.5),
        Measured(2, float("inf"), 0.1, 0.1, 0.5),
        Measured(2, 1e6, -0.1, 0.1, 0.5),
        Measured(2, 1e6, 0.1, 0.0, 0.5),
        Measured(2, 1e6, 0.1, 0.1, -0.1),
        Measured(2, 1e6, 0.1, 0.1, 1.1),
        Measured(2, 1e6, 0.1, 0.1, float("nan")),
        Received(0, 1.0),
        Received(1, float("nan")),
        Turn(-1),
    ],
)
def test_impossible_measurements_are_refused(body) -> None:
    with pytest.raises(MalformedMessageError):
        decode(Message(1, body).encode(), workers=3, parameters=10)


def test_a_load_is_one_bounded_tensor() -> None:
    for tensors in [(), (torch.ones(11),), (torch.ones(1, dtype=torch.int32),), (torch.ones(1), torch.ones(1))]:
        with pytest.raises(MalformedMessageError):
            decode(Message(1, Load(True, False), tensors).encode(), workers=3, parameters=10)


def test_busy_moments_do_not_affect_throughput():
    """Loads come at 1 MB/s, but for half a second in which nothing does."""
    intake = Intake()
    values = torch.zeros(25_000)
    intake.take(Message(0, Load(counts=False, last=False), (values,)), Load(counts=False, last=False), 0.0)
    times = [0.1 * number + 0.5 * (number > 12) for number in range(1, 31)]
    for number, now in enumerate(times, start=1):
        body = Load(counts=True, last=number == len(times))
        found = intake.take(Message(0, body, (values,)), body, now)
    size, seconds = found
    assert size / seconds == pytest.approx(1e6, rel=0.01)
