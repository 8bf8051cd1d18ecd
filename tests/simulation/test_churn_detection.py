"""Processes, failure detection and connections, against times by hand and on random outages."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from functools import partial
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.assembly.outages import Outage
from dlion_sim.protocol.events import Leave, PeerFound, PeerLost
from dlion_sim.scenario import from_data
from dlion_sim.simulation.churn import Churn
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.routing import Routing
from tests.simulation.agendas import finish

WORKERS = range(3)
CLUSTER = {
    "clouds": [
        {"name": "a", "workers": [{"count": 2, "nic": "10 Mbps"}], "lan": {"rtt": "2 ms"}},
        {"name": "b", "workers": [{"nic": "10 Mbps"}]},
    ],
    "wan": {"bandwidth": "10 Mbps", "rtt": "100 ms"},
}
ROUTING = Routing(
    from_data(
        {"name": "t", "duration": "1 s", "workload": {"dataset": "digits"}, "cluster": CLUSTER, "system": "dlion"}
    ).cluster
)


class Planned:
    """Given outages: of participants by number, and of paths."""

    def __init__(self, participants, paths):
        self._participants, self._paths = participants, paths
        self.absent_at_start = frozenset(
            number for number, outages in participants.items() if outages and outages[0].begin == 0
        )

    def next_after(self, number, time):
        outages = self._participants.get(number, [])
        place = bisect_left([outage.begin for outage in outages], time)
        return outages[place] if place < len(outages) else None

    def link_outages(self, a, b):
        return self._paths.get((a, b), ())


class World:
    """Three workers, two in a cloud and one in another, each the others' peer; it records their events with times."""

    def __init__(self, participants=None, paths=None, detection=0.0, silence=5.0, restart=0.0, leaves_after=None):
        self.event_queue = EventQueue()
        self.told, self.gone, self.rows, self.cuts = defaultdict(list), [], [], []
        self._leaves_after = leaves_after
        self.ended = lambda number: None
        self.churn = Churn(
            self.event_queue,
            ROUTING,
            Planned(participants or {}, paths or {}),
            detection=detection,
            silence=silence,
            restart=restart,
            neighbours=[[peer for peer in WORKERS if peer != number] for number in WORKERS],
            handle=self._tell,
            cut=lambda *pair: self.cuts.append((self.event_queue.now, *pair)),
            started=lambda number: self.told[number].append((self.event_queue.now, "begins")),
            ended=self._end,
            record=self.rows.append,
        )
        self.churn.start()

    def run(self):
        finish(self.event_queue)
        return self

    def of(self, number):
        """The events of a worker with their times, rounded to microseconds."""
        return [(round(time, 6), event) for time, event in self.told[number]]

    def _tell(self, number, event):
        assert self.churn.is_running(number)
        self.told[number].append((self.event_queue.now, event))
        if isinstance(event, Leave) and self._leaves_after is not None:
            incarnation = self.churn.incarnations[number]
            self.event_queue.after(self._leaves_after, lambda: self._leave(number, incarnation))

    def _end(self, number, for_good):
        self.gone.append((self.event_queue.now, number, for_good))
        self.ended(number)

    def _leave(self, number, incarnation):
        if self.churn.incarnations[number] == incarnation:
            self.churn.left(number)


def test_a_crash_is_detected_after_half_a_round_trip_and_the_detection_delay():
    world = World({2: [Outage(10, math.inf)]}, detection=0.5).run()
    assert world.of(0) == world.of(1) == [(10.55, PeerLost(2))]
    assert world.of(2) == []
    assert world.gone == [(10, 2, True)]
    assert [row.seconds for row in world.rows if row.what == "lost"] == pytest.approx([0.55, 0.55])
    assert sorted(world.cuts) == [(10, 2, 0), (10, 2, 1)]


def test_a_restarted_process_is_found_after_a_round_trip():
    world = World({0: [Outage(10, 20)]}, restart=3.0).run()
    assert world.of(1) == [(10.001, PeerLost(0)), (23.002, PeerFound(0))]
    assert world.of(2) == [(10.05, PeerLost(0)), (23.1, PeerFound(0))]
    assert world.of(0) == [(23, "begins"), (23.002, PeerFound(1)), (23.1, PeerFound(2))]
    assert world.gone == [(10, 0, False)]
    assert [(row.what, row.incarnation) for row in world.rows if row.what in ("down", "up")] == [("down", 0), ("up", 1)]


BOTH_WAYS = ("a", "b"), ("b", "a")
TOLD = {
    "a process that restarts before its failure is detected": (
        partial(World, {2: [Outage(10, 11)]}, detection=30.0),
        {0: [(11.1, PeerLost(2)), (11.1, PeerFound(2))]},
    ),
    "a whole cloud at once": (
        partial(World, {0: [Outage(10, 20)], 1: [Outage(10, 20)]}),
        {
            0: [(20, "begins"), (20.002, PeerFound(1)), (20.1, PeerFound(2))],
            2: [(10.05, PeerLost(0)), (10.05, PeerLost(1)), (20.1, PeerFound(0)), (20.1, PeerFound(1))],
        },
    ),
    "a path, for less than the silence": (
        partial(World, paths={ends: [Outage(10, 15)] for ends in BOTH_WAYS}),
        {number: [] for number in WORKERS},
    ),
    "both directions of a path": (
        partial(World, paths={ends: [Outage(10, 30 + 10 * number)] for number, ends in enumerate(BOTH_WAYS)}),
        {0: [(15, PeerLost(2)), (40.1, PeerFound(2))]},
    ),
    "a crash behind a path that is restored": (
        partial(World, {2: [Outage(11, math.inf)]}, {("a", "b"): [Outage(10, 14)]}),
        {0: [(14.05, PeerLost(2))]},
    ),
    "a crash before an outage of the path": (
        partial(World, {2: [Outage(5, math.inf)]}, {("a", "b"): [Outage(6, 6.5)]}, detection=10.0),
        {0: [(15.05, PeerLost(2))]},
    ),
    "a leave behind a path that is restored": (
        partial(World, {2: [Outage(10, math.inf, "leave")]}, {("a", "b"): [Outage(9, 13)]}, 10.0, leaves_after=1.0),
        {0: [(13.05, PeerLost(2))]},
    ),
    "a crash behind a path that is silent for too long": (
        partial(World, {2: [Outage(11, math.inf)]}, {("a", "b"): [Outage(10, 16)]}),
        {0: [(15, PeerLost(2))]},
    ),
    "a process that is started behind a path": (
        partial(World, {2: [Outage(10, 20)]}, {("a", "b"): [Outage(19, 23)]}),
        {
            0: [(10.05, PeerLost(2)), (23.1, PeerFound(2))],
            2: [(20, "begins"), (23.1, PeerFound(0)), (23.1, PeerFound(1))],
        },
    ),
}
"""What goes down: the outages, and what workers are told at which times."""


@pytest.mark.parametrize("case", TOLD)
def test_losses_and_finds_are_told_at_their_times(case):
    make, told = TOLD[case]
    world = make().run()
    assert {number: world.of(number) for number in told} == told


def test_a_failed_connection_accepts_sent_messages_until_the_failure_is_detected():
    world, seen = World({2: [Outage(10, 20)]}), []
    for time in (9.9, 10.01, 10.06, 20.05, 20.11):
        world.event_queue.after(
            time,
            lambda: seen.append(
                (world.churn.is_connected(0, 2), world.churn.connection(0, 2), world.churn.connection(2, 0))
            ),
        )
    world.run()
    assert seen == [
        (True, 0, 0),
        (False, 0, None),
        (False, None, None),
        (False, None, None),
        (True, 1, 1),
    ]


def test_a_late_participant_is_absent_at_first():
    world = World({2: [Outage(0, 5)]})
    assert not world.churn.is_connected(0, 2)
    assert world.churn.connection(1, 2) is None
    world.run()
    assert world.of(0) == [(5.1, PeerFound(2))]
    assert [(row.virtual_time, row.what, row.incarnation) for row in world.rows[:2]] == [(0, "down", 0), (5, "up", 0)]


@pytest.mark.parametrize(
    ("leaves_after", "gone", "what"), [(2.0, 9.0, "left"), (None, 10.0, "down"), (3.5, 10.0, "down")]
)
def test_a_preemption_has_notice_and_is_a_crash_if_leaving_takes_longer(leaves_after, gone, what):
    outage = Outage(10, 20, "preemption", notice=3.0)
    world = World({2: [outage]}, detection=0.5, leaves_after=leaves_after).run()
    assert world.of(2)[:2] == [(7, Leave(10)), (20, "begins")]
    late = 0.05 if what == "left" else 0.55  # A system closes the connections of a process that ends.
    assert world.of(0)[0] == (gone + late, PeerLost(2))
    assert world.gone == [(gone, 2, False)]
    assert [row.what for row in world.rows if row.participant == 2 and row.peer is None] == ["noticed", what, "up"]


@pytest.mark.parametrize(("leaves_after", "left", "back"), [(2.0, 12, 23), (15.0, 25, 28)])
def test_an_outage_after_a_leave_begins_when_the_participant_has_left(leaves_after, left, back):
    world = World({2: [Outage(10, 20, "leave")]}, leaves_after=leaves_after, restart=3.0).run()
    assert world.of(2)[:2] == [(10, Leave(None)), (back, "begins")]
    assert world.of(0) == [(left + 0.05, PeerLost(2)), (back + 0.1, PeerFound(2))]


@pytest.mark.parametrize(("leaves_after", "ends", "what"), [(15.0, 12, "down"), (1.0, 11, "left")])
def test_a_crash_during_a_leave_ends_the_process_at_once(leaves_after, ends, what):
    world = World({2: [Outage(10, 20, "leave", cut_short=12)]}, leaves_after=leaves_after).run()
    assert world.gone == [(ends, 2, False)]
    assert [row.what for row in world.rows if row.participant == 2 and row.peer is None] == ["noticed", what, "up"]
    assert world.of(2)[1] == (20, "begins")


def test_overlapping_outages_are_one():
    outages = [Outage(10, 20, "leave"), Outage(24, 40), Outage(50, math.inf)]
    world = World({2: outages}, leaves_after=12.0, restart=3.0).run()
    assert [time for time, what in world.of(2) if what == "begins"] == [43]
    assert world.gone == [(22, 2, False), (50, 2, True)]


def test_both_ends_of_a_silent_path_lose_each_other_until_it_is_restored():
    world = World(paths={("a", "b"): [Outage(10, 30)]}, silence=5.0)
    world.event_queue.after(14.9, lambda: world.cuts.append(world.churn.is_connected(0, 2)))
    world.run()
    assert world.of(2) == [(15, PeerLost(0)), (15, PeerLost(1)), (30.1, PeerFound(0)), (30.1, PeerFound(1))]
    assert world.of(0) == world.of(1) == [(15, PeerLost(2)), (30.1, PeerFound(2))]
    assert world.cuts == [True, (15, 0, 2), (15, 1, 2)]


def test_a_starting_process_learns_which_peers_are_absent_and_which_handshakes_failed():
    """One of the three fails during a handshake."""
    world, absent = World({0: [Outage(10, 20)], 2: [Outage(20.05, 30)], 1: [Outage(15, 40)]}), []
    world.event_queue.after(20.0, lambda: absent.append(world.churn.unreachable(0)))
    world.run()
    assert absent == [{1}]
    assert world.of(0)[:2] == [(20, "begins"), (20.1, PeerLost(2))]


times = st.lists(st.integers(1, 60), min_size=2, max_size=6, unique=True).map(sorted)


@st.composite
def schedules(draw):
    """Outages of workers, of all kinds and some from the start on or for good, and of the path's directions."""

    def outages(kinds):
        edges = draw(times)
        first = draw(st.booleans()) and kinds != ["crash"]
        edges = [0, *edges] if first else edges
        last = draw(st.sampled_from([math.inf, 70])) if kinds != ["crash"] else 70
        edges = [*edges, *([last] if len(edges) % 2 else [])]
        return [
            Outage(begin, end, draw(st.sampled_from(kinds)) if begin else "crash", 1.5)
            for begin, end in zip(edges[::2], edges[1::2], strict=True)
        ]

    kinds = ["crash", "preemption", "leave"]
    workers = {number: outages(kinds) for number in WORKERS if draw(st.booleans())}
    paths = {ends: outages(["crash"]) for ends in (("a", "b"), ("b", "a")) if draw(st.booleans())}
    return workers, paths


@given(
    schedules=schedules(),
    detection=st.sampled_from([0.0, 0.3, 8.0]),
    silence=st.sampled_from([0.5, 5.0]),
    restart=st.sampled_from([0.0, 0.5]),
    leaves_after=st.sampled_from([None, 0.0, 1.0, 7.0]),
)
def test_in_the_end_connections_are_those_of_running_processes(schedules, detection, silence, restart, leaves_after):
    """And each gets PeerFound and PeerLost in turn, however outages follow and overlap."""
    participants, paths = schedules
    world = World(participants, paths, detection, silence, restart, leaves_after).run()
    churn = world.churn
    for one, other in permutations(WORKERS, 2):
        both = churn.is_running(one) and churn.is_running(other)
        assert churn.is_connected(one, other) is both
        assert (churn.connection(one, other) is not None) is both
        knows = other not in Planned(participants, paths).absent_at_start
        for _, event in world.told[one]:
            if event == "begins":
                knows = None
            elif event == PeerFound(other):
                assert not knows
                knows = True
            elif event == PeerLost(other):
                assert knows is not False  # None: it looked for that one when it began
                knows = False
    times = [row.virtual_time for row in world.rows]
    assert times == sorted(times)
    assert all(row.seconds >= 0 for row in world.rows if row.what == "lost")
