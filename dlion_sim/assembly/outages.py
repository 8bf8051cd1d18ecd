"""The outages of each participant and each WAN path of a run, by its scenario and seed."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import attrgetter
from typing import Any

from dlion_sim.assembly.outage_times import intervals_of
from dlion_sim.errors import InputError, did_you_mean
from dlion_sim.scenario import Scenario, Schedule
from dlion_sim.scenario.availability import Availability, Direction, Entries, links_of, owners
from dlion_sim.scenario.faults import listed
from dlion_sim.scenario.outages import AnyOutageModel, Interval, Kind
from dlion_sim.scenario.system import ServerHost

_MOST_MERGED = 10_000
"""The number of merged outages after which the last one has no end."""
_MOST_OF_PATHS = 1000
"""The most outages in a manifest, of all paths in both directions together."""


@dataclass(frozen=True)
class Outage:
    """An interval in which a participant or path is down."""

    begin: float
    """Seconds since the run's start."""
    end: float
    """The end of the outage; infinite: none."""
    kind: Kind = "crash"
    notice: float = 0.0
    """Seconds of notice before a preemption; 0 for other kinds."""
    cut_short: float = math.inf
    """The begin of the first crash or preemption during a leave; infinite without one."""

    @property
    def killed_at(self) -> float:
        """When a process that still runs ends at once; infinite: never."""
        return self.cut_short if self.kind == "leave" else self.begin


class Outages:
    """The outages of participants, by number, and of directions of WAN paths, by their clouds.

    They are disjoint and in order, with more than the time of a restart between those of a machine, and begin before
    the scenario's duration. Without a duration there may be endlessly many: they are drawn on demand.
    """

    def __init__(self, participants: Sequence[OutageSequence], links: Mapping[Direction, PathOutages]) -> None:
        self._participants = participants
        self._links = links

    @classmethod
    def of(cls, scenario: Scenario, hosts: Sequence[int | ServerHost]) -> Outages:
        """The outages of a run whose parameter servers are at `hosts`, as `Setting.hosts`.

        Raises InputError for a server that does not exist, or for outages that cannot be.
        """
        availability = scenario.availability or Availability()
        horizon = math.inf if scenario.duration is None else scenario.duration
        places = scenario.cluster.workers
        servers = {f"server {number}": host for number, host in enumerate(hosts, start=len(places))}
        own = {name: host.cloud for name, host in servers.items() if isinstance(host, ServerHost)}
        _check_servers(availability, [*servers], [*own])

        def histories(section: str, entries: Entries, names: Sequence[str]) -> dict[str, OutageSequence]:
            return _histories(section, entries, names, availability, scenario.seed)

        def together(*sources: OutageSequence | None) -> OutageSequence:
            return OutageSequence(_merged([each for each in sources if each], availability.restart, horizon))

        clouds = histories("clouds", availability.clouds, [cloud.name for cloud in scenario.cluster.clouds])
        workers = histories("workers", availability.workers, [place.name for place in places])
        alone = histories("servers", availability.servers, [*own])
        participants = [together(workers.get(place.name), clouds.get(place.cloud)) for place in places]
        for name, host in servers.items():
            participants.append(
                participants[host] if isinstance(host, int) else together(alone.get(name), clouds.get(host.cloud))
            )
        return cls(participants, _links(scenario, availability, horizon))

    def participant(self, number: int) -> Iterator[Outage]:
        """A participant's outages from the run's start on, perhaps without end."""
        return iter(self._participants[number])

    def next_after(self, number: int, time: float) -> Outage | None:
        """A participant's first outage that begins at a time or later; None if there is none."""
        return self._participants[number].next_after(time)

    def next_kill(self, number: int, time: float) -> float:
        """When a participant's process that still runs at a time ends at once, as `OutageSequence.next_kill`."""
        return self._participants[number].next_kill(time)

    @property
    def absent_at_start(self) -> frozenset[int]:
        """The participants that are down from 0 s on."""
        begins = ((number, self.next_after(number, 0.0)) for number in range(len(self._participants)))
        return frozenset(number for number, first in begins if first and first.begin == 0)

    def link_outages(self, a: str, b: str) -> Sequence[Outage]:
        return self._links[a, b].outages if (a, b) in self._links else ()

    def links(self, a: str, b: str) -> Schedule | None:
        """The capacity of the path from cloud `a` to cloud `b`, 0 in its outages; None if it has none."""
        return self._links[a, b].bandwidth if (a, b) in self._links else None

    @property
    def of_paths(self) -> list[dict[str, Any]] | None:
        """The outages of all paths for the manifest; None if there are too many."""
        found = [
            {"sender": a, "receiver": b, "begin": each.begin, "end": each.end if math.isfinite(each.end) else None}
            for (a, b), link in self._links.items()
            for each in link.outages
        ]
        return found if len(found) <= _MOST_OF_PATHS else None


class OutageSequence:
    """Outages in order, each drawn on demand."""

    def __init__(self, outages: Iterator[Outage]) -> None:
        self._known: list[Outage] = []
        self._further = outages

    def __iter__(self) -> Iterator[Outage]:
        place = 0
        while self._has(place):
            yield self._known[place]
            place += 1

    def next_after(self, time: float) -> Outage | None:
        """The first that begins at `time` or later."""
        while (not self._known or self._known[-1].begin < time) and self._has(len(self._known)):
            pass
        place = bisect_left(self._known, time, key=attrgetter("begin"))
        return self._known[place] if place < len(self._known) else None

    def next_kill(self, time: float) -> float:
        """When a process that runs at `time` ends at once, by the outage under way or the next; infinite: never."""
        self.next_after(time)  # They are known then.
        place = bisect_left(self._known, time, key=attrgetter("begin"))
        near = self._known[max(0, place - 1) : place + 1]
        return min((each.killed_at for each in near if each.killed_at >= time), default=math.inf)

    def _has(self, place: int) -> bool:
        if place == len(self._known) and (outage := next(self._further, None)) is not None:
            self._known.append(outage)
        return place < len(self._known)


@dataclass(frozen=True)
class PathOutages:
    """One direction of a path with outages, and its capacity, 0 in these."""

    outages: Sequence[Outage]
    bandwidth: Schedule


def _histories(
    section: str, entries: Entries, names: Sequence[str], availability: Availability, seed: int
) -> dict[str, OutageSequence]:
    """The outages of each name that an entry matches."""
    found = {}
    for key, members in owners(entries, names).items():
        drawn = intervals_of(entries[key], members, seed, section, key)
        for name, intervals in zip(members, drawn, strict=True):
            found[name] = OutageSequence(_as_outages(intervals, entries[key], availability))
    return found


def _as_outages(intervals: Iterator[Interval], entry: AnyOutageModel, availability: Availability) -> Iterator[Outage]:
    kind, notice = availability.manner(entry)
    return (Outage(begin, end, kind, notice) for begin, end in intervals)


def _merged(sources: Sequence[Iterable[Outage]], pause: float, horizon: float) -> Iterator[Outage]:
    """All outages in order; one that begins during another, or up to `pause` after it, extends that one.

    Of a leave that others extend, the first of another kind is the latest end of the process.
    """
    ordered = heapq.merge(*sources, key=attrgetter("begin"))
    current, merged = None, 0
    for outage in takewhile(lambda each: each.begin < horizon, ordered):
        if current is None or outage.begin > current.end + pause:
            if current is not None:
                yield current
            current, merged = outage, 0
        else:
            merged += 1
            end = max(current.end, outage.end) if merged < _MOST_MERGED else math.inf
            cut_short = current.cut_short
            if current.kind == "leave":
                cut_short = min(cut_short, outage.killed_at)
            current = replace(current, end=end, cut_short=cut_short)
        if math.isinf(current.end):
            break
    if current is not None:
        yield current


def _links(scenario: Scenario, availability: Availability, horizon: float) -> dict[Direction, PathOutages]:
    clouds = [cloud.name for cloud in scenario.cluster.clouds]
    sources: dict[Direction, list[OutageSequence]] = {}
    owned = links_of(availability.links, clouds)
    for key, entry in availability.links.items():
        links, alone = owned[key], {key: entry}
        for name, history in _histories("links", alone, [*links], availability, scenario.seed).items():
            for direction in links[name]:
                sources.setdefault(direction, []).append(history)
    found = {}
    for (a, b), histories in sources.items():
        outages = tuple(_merged(histories, 0.0, horizon))
        bandwidth, _ = scenario.cluster.wan_path(a, b)
        assert bandwidth is not None, "an unchecked scenario"
        if outages:
            found[a, b] = PathOutages(outages, _interrupted(bandwidth, outages, horizon, f"{a}>{b}"))
    return found


def _interrupted(bandwidth: Schedule, outages: Sequence[Outage], horizon: float, name: str) -> Schedule:
    """The bandwidth, 0 in the outages, up to the horizon."""
    if outages[0].begin == 0:
        raise InputError(f"{name} is down from 0 s on", path="availability.links", allowed="later than 0 s")
    try:
        return bandwidth.interrupted(((each.begin, each.end) for each in outages), horizon)
    except ValueError as error:
        raise InputError(f"{name}: {error}", path="availability.links", allowed="fewer changes") from None


def _check_servers(availability: Availability, servers: Sequence[str], own: Sequence[str]) -> None:
    found = owners(availability.servers, own)
    for name in availability.servers:
        if not found[name] and name not in own:
            at_worker = "is on a worker's machine, whose outages it has" if name in servers else "does not exist"
            raise InputError(
                f"'{name}' {at_worker}{did_you_mean(name, own)}",
                path=f"availability.servers.{name}",
                allowed=listed(own) or "none: no parameter server has a machine of its own",
            )
