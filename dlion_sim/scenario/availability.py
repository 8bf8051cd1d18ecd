"""Availability: when machines and links can be used, and how participants leave and return."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain, combinations, permutations
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from dlion_sim.scenario.availability_trace import AvailabilityTrace
from dlion_sim.scenario.cluster import Cluster
from dlion_sim.scenario.faults import RuleError, no_such
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.outages import AnyOutageModel, Kind, OutageModel, outage_model_of
from dlion_sim.scenario.units import Duration

Direction = tuple[str, str]
"""(sending cloud, receiving cloud)."""


def _entry(given: object, info: ValidationInfo) -> object:
    if not isinstance(given, Mapping):
        return given
    if "trace" in given:
        return AvailabilityTrace.model_validate(given).read(Path((info.context or {}).get("folder", "")))
    return outage_model_of(given)


Entry = Annotated[AnyOutageModel, BeforeValidator(_entry, json_schema_input_type=AnyOutageModel | AvailabilityTrace)]
Entries = dict[str, Entry]


class Availability(Model):
    """When participants and links can be used. One that joins later is in `cluster`, too, and down from 0 s on.

    After a crash, a worker has only its training data; it fetches the parameters from another worker.
    """

    workers: Entries = Field(default_factory=dict)
    """Outages of workers, by name, e.g. edge/1, or by pattern, e.g. "edge/*". An exact name precedes the first matching
    pattern."""
    clouds: Entries = Field(default_factory=dict)
    """Outages of all machines of a cloud at once."""
    links: Entries = Field(default_factory=dict)
    """Outages of the path between two clouds, e.g. east-west, or of one direction, e.g. "east>west"; or by pattern. An
    exact name precedes the first matching pattern, among those for both directions and among those for one; a direction
    has the outages of both."""
    servers: Entries = Field(default_factory=dict)
    """Outages of parameter servers on machines of their own, e.g. server 8."""
    kind: Kind = "crash"
    """How an outage begins. crash: at once. preemption: at the end of a notice, if it has not left gracefully by
    then. leave: gracefully, after all messages were sent."""
    notice: Duration = 30.0
    """Time from the notice to the preemption."""
    on_loss: Literal["go_on", "wait", "abort"] = "go_on"
    """What a participant does that waits for a lost peer: continue without it, wait for its return, or end the run."""
    detection: Duration = 0.0
    """Time until peers detect a crash, in addition to half a round trip. 0 s: only the process crashes; for whole
    machines use `silence`."""
    silence: Annotated[Duration, Field(gt=0)] = 30.0
    """Time after which both ends of a link that carries nothing consider each other lost."""
    restart: Duration = 0.0
    """Time from a machine's return until its process runs: booting, loading an image."""
    sponsor: Literal["nearest", "least_loaded", "best"] = "nearest"
    """Member that sends its state to a joining worker: the first to answer, that with the least to send, or with the
    lowest loss."""

    @model_validator(mode="after")
    def _gives_notice_of_preemptions(self) -> Self:
        for section in ("workers", "clouds", "servers"):
            for name, entry in getattr(self, section).items():
                kind, _ = self.manner(entry)
                if entry.notice is not None and kind != "preemption":
                    raise RuleError(f"a {kind} has no notice", allowed="with kind: preemption", at=(section, name))
        for name, entry in self.links.items():
            if entry.kind is not None or entry.notice is not None:
                raise RuleError(
                    "a link has no kind or notice of outages", allowed="neither kind nor notice", at=("links", name)
                )
        return self

    def manner(self, entry: OutageModel) -> tuple[Kind, float]:
        """The kind of an entry's outages, and their notice in seconds."""
        kind = entry.kind or self.kind
        return kind, 0.0 if kind != "preemption" else self.notice if entry.notice is None else entry.notice

    def reads(self, key: Literal["kind", "notice"]) -> bool:
        """Whether any entry uses the common value of that key."""
        entries = [*self.workers.values(), *self.clouds.values(), *self.servers.values()]
        return any(
            getattr(entry, key) is None and (key == "kind" or self.manner(entry)[0] == "preemption")
            for entry in entries
        )

    def check(self, cluster: Cluster, duration: float | None) -> None:
        """Raise RuleError for unknown workers, clouds and links, and for outages that a run of this duration cannot
        have."""
        clouds = [cloud.name for cloud in cluster.clouds]
        for name in self.workers:
            _check_name("worker", name, [worker.name for worker in cluster.workers], at=("workers", name))
        for name in self.clouds:
            _check_name("cloud", name, clouds, at=("clouds", name))
        owned = links_of(self.links, clouds)
        for name, entry in self.links.items():
            links = _links([name], clouds, is_one_way=">" in name)
            _check_name("link", name, [*links], at=("links", name))
            if name in links and not owned[name]:
                raise RuleError("the link is listed already, with its clouds in the other order", at=("links", name))
            for a, b in chain.from_iterable(links[each] for each in links if fnmatchcase(each, name)):
                bandwidth, _ = cluster.wan_path(a, b)
                if bandwidth is None:
                    problem = f"the path from '{a}' to '{b}' is unlimited, so it cannot have outages"
                    raise RuleError(problem, allowed="with cluster.wan.bandwidth, or its own", at=("links", name))
                if duration is None and (entry.is_endless or bandwidth.repeat is not None):
                    problem = "repeats without end, and the run has no duration"
                    raise RuleError(problem, allowed="with duration", at=("links", name))


def links_of(entries: Entries, clouds: Sequence[str]) -> Mapping[str, Mapping[str, Sequence[Direction]]]:
    """The links that each entry applies to, by name: `owners` among the keys for both directions, and among the others.

    Single directions have ">" in their names.
    """
    found: dict[str, Mapping[str, Sequence[Direction]]] = {}
    for is_one_way in (False, True):
        alike = {key: entry for key, entry in entries.items() if (">" in key) == is_one_way}
        links = _links(alike, clouds, is_one_way=is_one_way)
        found |= {key: {name: links[name] for name in names} for key, names in owners(alike, [*links]).items()}
    return found


def _links(keys: Collection[str], clouds: Sequence[str], *, is_one_way: bool) -> Mapping[str, Sequence[Direction]]:
    """All links by name; of the two names of both directions, the one in `keys`."""
    if is_one_way:
        return {f"{a}>{b}": [(a, b)] for a, b in permutations(clouds, 2)}
    links = {}
    for a, b in combinations(clouds, 2):
        name, reverse = f"{a}-{b}", f"{b}-{a}"
        links[reverse if reverse in keys and name not in keys else name] = [(a, b), (b, a)]
    return links


def owners(entries: Mapping[str, OutageModel], names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The names that each entry applies to: its own, or those that match its pattern and no earlier entry."""
    found: dict[str, list[str]] = {key: [] for key in entries}
    for name in names:
        key = name if name in entries else next((key for key in entries if fnmatchcase(name, key)), None)
        if key is not None:
            found[key].append(name)
    return found


def _check_name(what: str, name: str, names: Sequence[str], at: tuple[str, ...]) -> None:
    if not any(fnmatchcase(each, name) for each in names):
        raise no_such(what, name, names, at)
