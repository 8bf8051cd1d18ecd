"""Who is there in virtual time, and whom each participant takes for there.

Machines and paths go and come back as the run's outages say. Nobody is told that a process has ended: each of its peers
notices by itself, half a round trip later, and `detection` after that where it crashed. So do both ends where a path is
silent for too long. Who begins, or is behind a path that is back, is found a round trip later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dlion_sim.assembly.outages import Outage, Outages
from dlion_sim.protocol.events import Event, Leave, PeerFound, PeerLost
from dlion_sim.results import MembershipRow, What
from dlion_sim.simulation.event_queue import Call, EventQueue
from dlion_sim.simulation.routing import Routing

_Path = tuple[str, str]
"""The sending and the receiving cloud."""


@dataclass(frozen=True)
class Delays:
    """How long things take, in seconds."""

    detection: float
    """Until peers notice a crash, beyond half a round trip."""
    silence: float
    """Until both ends of a path that nothing comes over take each other for lost."""
    restart: float
    """From when a machine is back until its process begins."""


class Churn:
    """Which processes run, and who of their `neighbours`, by participant, is connected with whom.

    `tell` hands an event to a participant; `cut` is called with two between whom all is lost that has not left, `came`
    with who begins, `went` with who has ended and whether for good; `record` takes rows. Pickled, it keeps its state;
    `attach` gives it the outages to go on with.
    """

    def __init__(
        self,
        event_queue: EventQueue,
        routing: Routing,
        outages: Outages,
        *,
        delays: Delays,
        neighbours: Sequence[Sequence[int]],
        tell: Callable[[int, Event], None],
        cut: Callable[[int, int], None],
        came: Callable[[int], None],
        went: Callable[[int, bool], None],
        record: Callable[[MembershipRow], None],
    ) -> None:
        self._event_queue = event_queue
        self._routing = routing
        self._delays = delays
        self._neighbours = neighbours
        self._tell, self._cut, self._came, self._went, self._record = tell, cut, came, went, record
        self.attach(outages)
        self.incarnations = [0] * len(neighbours)
        """How often each participant's process has ended: the one that runs, or the next one."""
        absent = outages.absent_at_start
        self._hears = [
            {} if number in absent else {peer: 0 for peer in peers if peer not in absent}
            for number, peers in enumerate(neighbours)
        ]
        """The incarnation of each peer that a participant takes for there."""
        self._is_there = [number not in absent for number in range(len(neighbours))]
        self._ended = [0.0] * len(neighbours)
        """When each participant's process has ended last."""
        self._leaving: dict[int, Outage] = {}
        """Why those are about to end who have been told to leave."""
        self._broken: set[_Path] = set()

    def attach(self, outages: Outages) -> None:
        """Go by these from now on."""
        self._outages = outages

    def start(self) -> None:
        """Plan the first outage of every participant and all those of paths."""
        for number, is_there in enumerate(self._is_there):
            outage = self._outages.next_after(number, 0.0)
            if outage is not None and not is_there:
                self._note(number, "down")
                self._stay_away(number, outage)
            else:
                self._plan(number, outage)
        clouds = list(dict.fromkeys(map(self._routing.cloud, range(len(self._neighbours)))))
        for path in ((one, other) for one in clouds for other in clouds):
            for outage in self._outages.link_outages(*path):
                self._at(outage.begin, partial(self._break, path, outage))
                self._at(outage.end, partial(self._mend, path))

    def is_there(self, number: int) -> bool:
        """Whether a participant's process runs."""
        return self._is_there[number]

    def reaches(self, sender: int, receiver: int) -> bool:
        """Whether there is a connection on which one can send to the other."""
        return self._hears[sender].get(receiver) == self.incarnations[receiver]

    def hears(self, receiver: int, sender: int) -> bool:
        """Whether one takes what has come from the other: what left before the sender was lost is still good."""
        return sender in self._hears[receiver]

    def out_of_reach(self, number: int) -> frozenset[int]:
        """The neighbours of one who begins that it will not find a round trip later."""
        return frozenset(
            peer for peer in self._neighbours[number] if not self._is_there[peer] or self._is_broken(number, peer)
        )

    def left(self, number: int) -> None:
        """A participant has sent all that it had to: its process ends in good order."""
        self._event_queue.after(0.0, partial(self._leave, number, self.incarnations[number]))

    def _at(self, time: float, call: Call) -> None:
        self._event_queue.after(max(0.0, time - self._event_queue.now), call)

    def _plan(self, number: int, outage: Outage | None) -> None:
        """Plan a participant's next outage, if there is one."""
        if outage is None:
            return
        if outage.kind != "crash":
            self._at(outage.begin - outage.notice, partial(self._announce, number, outage))
        if outage.kind != "leave":
            self._at(outage.begin, partial(self._crash, number, outage))

    def _announce(self, number: int, outage: Outage) -> None:
        """A participant is told to leave."""
        self._leaving[number] = outage
        self._note(number, "noticed")
        self._tell(number, Leave(None if outage.kind == "leave" else outage.begin))

    def _crash(self, number: int, outage: Outage) -> None:
        if self._is_there[number]:
            self._end(number, outage, "down", self._delays.detection)

    def _leave(self, number: int, incarnation: int) -> None:
        if self.incarnations[number] == incarnation:
            self._end(number, self._leaving[number], "left", 0.0)

    def _end(self, number: int, outage: Outage, what: What, detection: float) -> None:
        """A process has ended, of which its peers know that much later."""
        self._note(number, what)
        incarnation, hears = self.incarnations[number], self._hears[number]
        self._is_there[number] = False
        self._ended[number] = self._event_queue.now
        self.incarnations[number] += 1
        for peer in self._neighbours[number]:
            if peer in hears:
                self._cut(number, peer)
            if self._hears[peer].get(number) == incarnation:
                latency = self._routing.route(number, peer).latency
                self._event_queue.after(latency + detection, partial(self._notice, peer, number, incarnation))
        hears.clear()
        self._leaving.pop(number, None)
        self._stay_away(number, outage)

    def _stay_away(self, number: int, outage: Outage) -> None:
        """Plan when a participant is back from an outage; from the next one, where that comes before."""
        back = max(outage.end, self._event_queue.now) + self._delays.restart
        following = self._outages.next_after(number, outage.end)
        if following is not None and following.begin <= back:
            self._stay_away(number, following)
        else:
            self._went(number, math.isinf(back))
            self._at(back, partial(self._begin, number))

    def _begin(self, number: int) -> None:
        """A process begins."""
        self._is_there[number] = True
        self._note(number, "up")
        self._came(number)
        for peer in self._neighbours[number]:
            if self._is_there[peer]:
                self._connect(number, peer, is_sought=True)
        self._plan(number, self._outages.next_after(number, self._event_queue.now))

    def _connect(self, one: int, other: int, *, is_sought: bool = False) -> None:
        """Two begin to shake hands, unless they cannot: when the path is back, they will.

        The first is told if nothing comes of it, where the other one `is_sought`.
        """
        if not self._is_broken(one, other):
            round_trip = self._routing.route(one, other).latency + self._routing.route(other, one).latency
            incarnations = self.incarnations[one], self.incarnations[other]
            self._event_queue.after(round_trip, partial(self._meet, one, other, incarnations, is_sought))

    def _meet(self, one: int, other: int, incarnations: tuple[int, int], is_sought: bool) -> None:
        """Two find each other, if they are still who they were."""
        if self.incarnations[one] != incarnations[0] or self.reaches(one, other):
            return
        if self.incarnations[other] != incarnations[1] or self._is_broken(one, other):
            if is_sought:
                self._tell(one, PeerLost(other))
            return
        ends = (one, other), (other, one)
        for each, peer in ends:
            if peer in self._hears[each]:  # The one before, whose loss it has not noticed.
                self._lose(each, peer, self._ended[peer])
        for each, peer in ends:
            self._hears[each][peer] = self.incarnations[peer]
        for each, peer in ends:
            self._note(peer, "found", peer=each)
            self._tell(each, PeerFound(peer))

    def _notice(self, number: int, peer: int, incarnation: int) -> None:
        """One learns that the other's process has ended; over a path that is down only when that is back."""
        if self._hears[number].get(peer) == incarnation and not self._is_broken(number, peer):
            self._lose(number, peer, self._ended[peer])

    def _lose(self, number: int, peer: int, since: float) -> None:
        incarnation, now = self._hears[number].pop(peer), self._event_queue.now
        self._record(MembershipRow(now, peer, incarnation, "lost", number, seconds=now - since))
        self._tell(number, PeerLost(peer))

    def _break(self, path: _Path, outage: Outage) -> None:
        self._broken.add(path)
        if outage.end - outage.begin > self._delays.silence:
            self._event_queue.after(self._delays.silence, partial(self._fall_silent, path, outage.begin))

    def _fall_silent(self, path: _Path, since: float) -> None:
        """Nothing has come over a path for so long that both ends give each other up."""
        for pair in self._over(path):
            self._cut(*pair)
            for each, peer in (pair, pair[::-1]):
                if peer in self._hears[each]:
                    self._lose(each, peer, since)

    def _mend(self, path: _Path) -> None:
        """A path is back: what its ends could not learn over it comes through, and who was lost can be found."""
        self._broken.discard(path)
        for pair in self._over(path):
            if self._is_broken(*pair):
                continue
            for each, peer in (pair, pair[::-1]):
                heard = self._hears[each].get(peer)
                if heard is not None and heard != self.incarnations[peer]:
                    latency = self._routing.route(peer, each).latency
                    self._event_queue.after(latency, partial(self._notice, each, peer, heard))
            if all(self._is_there[each] for each in pair) and not self.reaches(*pair):
                self._connect(*pair)

    def _over(self, path: _Path) -> Iterator[tuple[int, int]]:
        """The neighbours at both ends of a path."""
        clouds = list(map(self._routing.cloud, range(len(self._neighbours))))
        for one, peers in enumerate(self._neighbours):
            if clouds[one] == path[0]:
                yield from ((one, other) for other in peers if clouds[other] == path[1])

    def _is_broken(self, one: int, other: int) -> bool:
        """Whether nothing goes between two, in one direction at least."""
        clouds = self._routing.cloud(one), self._routing.cloud(other)
        return clouds in self._broken or clouds[::-1] in self._broken

    def _note(self, number: int, what: What, peer: int | None = None) -> None:
        self._record(MembershipRow(self._event_queue.now, number, self.incarnations[number], what, peer))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_outages"}
