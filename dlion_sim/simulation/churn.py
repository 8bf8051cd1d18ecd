"""Churn in virtual time: which processes run, and which peers each participant is connected to.

Machines and paths are down as the run's outages say. Each peer detects the end of a process by itself, half a round
trip later, and `detection` seconds after that if it crashed. Both ends of a path detect its outage after `silence`
seconds. A process that starts, or that is behind a restored path, is found a round trip later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dlion_sim.assembly.outages import Outage, Outages
from dlion_sim.protocol.events import Event, Leave, PeerFound, PeerLost
from dlion_sim.results import MembershipEvent, MembershipRow
from dlion_sim.simulation.event_queue import Call, EventQueue
from dlion_sim.simulation.routing import Routing

_Path = tuple[str, str]
"""The sending and the receiving cloud."""


class Churn:
    """The processes that run, and the connections between `neighbours`, which are given by participant.

    Peers detect a crash `detection` seconds after half a round trip; both ends of a path that is down consider each
    other lost after `silence` seconds; a process starts `restart` seconds after its machine's outage.

    `handle` hands an event to a participant; `cut` drops unsent messages between two; `started` and `ended` get the
    number of a participant whose process starts or ends, the latter also whether for good; `record` takes rows. A
    checkpoint has its state; `attach` sets the outages after resuming.
    """

    def __init__(
        self,
        event_queue: EventQueue,
        routing: Routing,
        outages: Outages,
        *,
        detection: float,
        silence: float,
        restart: float,
        neighbours: Sequence[Sequence[int]],
        handle: Callable[[int, Event], None],
        cut: Callable[[int, int], None],
        started: Callable[[int], None],
        ended: Callable[[int, bool], None],
        record: Callable[[MembershipRow], None],
    ) -> None:
        self._event_queue = event_queue
        self._routing = routing
        self._detection, self._silence, self._restart = detection, silence, restart
        self._neighbours = neighbours
        self._handle, self._cut, self._started, self._process_ended, self._record = handle, cut, started, ended, record
        self.attach(outages)
        self.incarnations = [0] * len(neighbours)
        """How often each participant's process has ended: the number of the present or next one."""
        absent = outages.absent_at_start
        self._known = [
            {} if number in absent else {peer: 0 for peer in peers if peer not in absent}
            for number, peers in enumerate(neighbours)
        ]
        """By participant, the incarnation of each peer that it considers connected."""
        self._handshakes: dict[tuple[int, int], int] = {}
        """How many handshakes of two have completed, by both orders of the two."""
        self._is_running = [number not in absent for number in range(len(neighbours))]
        self._ends: list[list[tuple[float, float]]] = [[] for _ in neighbours]
        """By participant and incarnation, the end of the process, and the time from which it can be detected (s)."""
        self._leaving: dict[int, Outage] = {}
        """By participant that is leaving, the outage that is the reason."""
        self._interrupted: set[_Path] = set()

    def attach(self, outages: Outages) -> None:
        self._outages = outages

    def start(self) -> None:
        """Schedule the first outage of every participant and all outages of paths."""
        for number, is_running in enumerate(self._is_running):
            outage = self._outages.next_after(number, 0.0)
            if outage is not None and not is_running:
                self._record_row(number, "down")
                self._schedule_return(number, outage)
            else:
                self._schedule_outage(number, outage)
        clouds = list(dict.fromkeys(map(self._routing.cloud, range(len(self._neighbours)))))
        for path in ((one, other) for one in clouds for other in clouds):
            for outage in self._outages.link_outages(*path):
                self._at(outage.begin, partial(self._interrupt_path, path, outage))
                self._at(outage.end, partial(self._restore_path, path))

    def is_running(self, number: int) -> bool:
        return self._is_running[number]

    def is_connected(self, sender: int, receiver: int) -> bool:
        """Whether there is a connection from `sender` to `receiver`, with its present process."""
        return self._known[sender].get(receiver) == self.incarnations[receiver]

    def connection(self, receiver: int, sender: int) -> int | None:
        """The number of the connection, among those of the two, by which `receiver` accepts messages of `sender`.

        It accepts those sent before the sender failed, until it detects that; None: there is no connection.
        """
        return self._handshakes.get((receiver, sender), 0) if sender in self._known[receiver] else None

    def unreachable(self, number: int) -> frozenset[int]:
        """The neighbours that a starting participant cannot reach."""
        return frozenset(
            peer
            for peer in self._neighbours[number]
            if not self._is_running[peer] or self._is_interrupted(number, peer)
        )

    def left(self, number: int) -> None:
        """A participant has left gracefully: its process ends."""
        self._event_queue.after(0.0, partial(self._leave, number, self.incarnations[number]))

    def _at(self, time: float, call: Call) -> None:
        self._event_queue.after(max(0.0, time - self._event_queue.now), call)

    def _schedule_outage(self, number: int, outage: Outage | None) -> None:
        if outage is None:
            return
        if outage.kind != "crash":
            self._at(outage.begin - outage.notice, partial(self._notify, number, outage))
        if math.isfinite(outage.killed_at):
            self._at(outage.killed_at, partial(self._crash, number, outage))

    def _notify(self, number: int, outage: Outage) -> None:
        self._leaving[number] = outage
        self._record_row(number, "noticed")
        self._handle(number, Leave(None if outage.kind == "leave" else outage.begin))

    def _crash(self, number: int, outage: Outage) -> None:
        if self._is_running[number]:
            self._end(number, outage, "down", self._detection)

    def _leave(self, number: int, incarnation: int) -> None:
        if self.incarnations[number] == incarnation:
            self._end(number, self._leaving[number], "left", 0.0)

    def _end(self, number: int, outage: Outage, what: MembershipEvent, detection: float) -> None:
        """A process ends, which its peers detect later, by latency and `detection`."""
        self._record_row(number, what)
        incarnation, accepts = self.incarnations[number], self._known[number]
        self._is_running[number] = False
        self._ends[number].append((self._event_queue.now, self._event_queue.now + detection))
        self.incarnations[number] += 1
        for peer in self._neighbours[number]:
            if peer in accepts:
                self._cut(number, peer)
            if self._known[peer].get(number) == incarnation:
                latency = self._routing.route(number, peer).latency
                self._event_queue.after(latency + detection, partial(self._detect_failure, peer, number, incarnation))
        accepts.clear()
        self._leaving.pop(number, None)
        self._schedule_return(number, outage)

    def _schedule_return(self, number: int, outage: Outage) -> None:
        """Schedule a participant's return from an outage, or from the next one if that begins before."""
        back = max(outage.end, self._event_queue.now) + self._restart
        following = self._outages.next_after(number, outage.end)
        if following is not None and following.begin <= back:
            self._schedule_return(number, following)
        else:
            self._process_ended(number, math.isinf(back))
            self._at(back, partial(self._start_process, number))

    def _start_process(self, number: int) -> None:
        self._is_running[number] = True
        self._record_row(number, "up")
        self._started(number)
        for peer in self._neighbours[number]:
            if self._is_running[peer]:
                self._connect(number, peer, reports_failure=True)
        self._schedule_outage(number, self._outages.next_after(number, self._event_queue.now))

    def _connect(self, one: int, other: int, *, reports_failure: bool = False) -> None:
        """Begin a handshake, unless the path is down: then it begins when the path is restored.

        If it fails and `reports_failure`, the first one gets `PeerLost`.
        """
        if not self._is_interrupted(one, other):
            round_trip = self._routing.route(one, other).latency + self._routing.route(other, one).latency
            incarnations = self.incarnations[one], self.incarnations[other]
            self._event_queue.after(
                round_trip, partial(self._complete_handshake, one, other, incarnations, reports_failure)
            )

    def _complete_handshake(self, one: int, other: int, incarnations: tuple[int, int], reports_failure: bool) -> None:
        """A handshake completes, if both processes are still the same."""
        if self.incarnations[one] != incarnations[0] or self.is_connected(one, other):
            return
        if self.incarnations[other] != incarnations[1] or self._is_interrupted(one, other):
            if reports_failure:
                self._handle(one, PeerLost(other))
            return
        ends = (one, other), (other, one)
        for each, peer in ends:
            if peer in self._known[each]:  # The former process, whose end it has not detected.
                self._report_ended(each, peer)
        for each, peer in ends:
            self._known[each][peer] = self.incarnations[peer]
            self._handshakes[each, peer] = self._handshakes.get((each, peer), 0) + 1
        for each, peer in ends:
            self._record_row(peer, "found", peer=each)
            self._handle(each, PeerFound(peer))

    def _detect_failure(self, number: int, peer: int, incarnation: int) -> None:
        """A participant detects the end of a peer's process, unless the path is down."""
        if self._known[number].get(peer) == incarnation and not self._is_interrupted(number, peer):
            self._report_ended(number, peer)

    def _report_ended(self, number: int, peer: int) -> None:
        ended, _ = self._ends[peer][self._known[number][peer]]
        self._report_lost(number, peer, ended)

    def _report_lost(self, number: int, peer: int, since: float) -> None:
        incarnation, now = self._known[number].pop(peer), self._event_queue.now
        self._record(MembershipRow(now, peer, incarnation, "lost", number, seconds=now - since))
        self._handle(number, PeerLost(peer))

    def _interrupt_path(self, path: _Path, outage: Outage) -> None:
        self._interrupted.add(path)
        if outage.end - outage.begin > self._silence:
            self._event_queue.after(self._silence, partial(self._time_out, path, outage.begin))

    def _time_out(self, path: _Path, since: float) -> None:
        """A path has been down for so long that both ends consider each other lost."""
        for pair in self._pairs_over(path):
            self._cut(*pair)
            for each, peer in (pair, pair[::-1]):
                if peer in self._known[each]:
                    self._report_lost(each, peer, since)

    def _restore_path(self, path: _Path) -> None:
        """A path is up again: failures are detected over it, and lost peers reconnect."""
        self._interrupted.discard(path)
        for pair in self._pairs_over(path):
            if self._is_interrupted(*pair):
                continue
            for each, peer in (pair, pair[::-1]):
                heard = self._known[each].get(peer)
                if heard is not None and heard != self.incarnations[peer]:
                    latency, (_, detectable) = self._routing.route(peer, each).latency, self._ends[peer][heard]
                    remaining = max(0.0, detectable - self._event_queue.now)
                    self._event_queue.after(remaining + latency, partial(self._detect_failure, each, peer, heard))
            if all(self._is_running[each] for each in pair) and not self.is_connected(*pair):
                self._connect(*pair)

    def _pairs_over(self, path: _Path) -> Iterator[tuple[int, int]]:
        """The pairs of neighbours at both ends of a path."""
        clouds = list(map(self._routing.cloud, range(len(self._neighbours))))
        for one, peers in enumerate(self._neighbours):
            if clouds[one] == path[0]:
                yield from ((one, other) for other in peers if clouds[other] == path[1])

    def _is_interrupted(self, one: int, other: int) -> bool:
        """Whether the path between two is down, in one direction at least."""
        clouds = self._routing.cloud(one), self._routing.cloud(other)
        return clouds in self._interrupted or clouds[::-1] in self._interrupted

    def _record_row(self, number: int, what: MembershipEvent, peer: int | None = None) -> None:
        self._record(MembershipRow(self._event_queue.now, number, self.incarnations[number], what, peer))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_outages"}
