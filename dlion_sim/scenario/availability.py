"""Who and what is there when: machines that leave, fail and come back, and links that break."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain, combinations, permutations
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from dlion_sim.errors import did_you_mean
from dlion_sim.scenario.availability_trace import AvailabilityTrace
from dlion_sim.scenario.cluster import Cluster
from dlion_sim.scenario.faults import RuleError, listed
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
    """Who is there when. All that ever take part are in `cluster`: who comes later is down from 0 s on.

    What comes back after a crash has nothing but its data: its parameters are fetched from others.
    """

    workers: Entries = Field(default_factory=dict)
    """When a worker is down, by its name, e.g. edge/1; or by a pattern, e.g. "edge/*", for all that have no entry of
    their own name. Of several patterns the first holds."""
    clouds: Entries = Field(default_factory=dict)
    """When all machines of a cloud are down at once, by its name or a pattern."""
    links: Entries = Field(default_factory=dict)
    """When nothing goes over the path between two clouds, e.g. east-west, or in one direction alone, e.g. "east>west";
    or by a pattern of such."""
    servers: Entries = Field(default_factory=dict)
    """When a parameter server on a machine of its own is down, by its name, e.g. server 8; or by a pattern."""
    kind: Kind = "crash"
    """How machines go: all at once; with a notice, and what is not done by then is lost; or leaving in good order, when
    it has sent all that it had to."""
    notice: Duration = 30.0
    """How long before a preemption the machine is told."""
    on_loss: Literal["go_on", "wait", "abort"] = "go_on"
    """What those do that wait for a lost peer: go on without it, wait until it is back, or end the run."""
    detection: Duration = 0.0
    """How long after half a round trip peers notice a crash. 0 s: the machine goes on, and its system closes the
    process's connections. Where whole machines vanish, it is as long as live nodes wait for a sign of life."""
    silence: Annotated[Duration, Field(gt=0)] = 30.0
    """When nothing has been heard over a link for so long, both ends take each other for lost."""
    restart: Duration = 0.0
    """Time from when a machine is back until its process runs: boot, loading an image."""
    sponsor: Literal["nearest", "least_loaded", "best"] = "nearest"
    """From whom a newcomer gets its state: who answers first, has the least to send, or has the least loss."""

    @model_validator(mode="after")
    def _gives_notice_of_preemptions(self) -> Self:
        for section in ("workers", "clouds", "servers"):
            for name, entry in getattr(self, section).items():
                kind, _ = self.manner(entry)
                if entry.notice is not None and kind != "preemption":
                    raise RuleError(f"a {kind} has no notice", allowed="with kind: preemption", at=(section, name))
        for name, entry in self.links.items():
            if entry.kind is not None or entry.notice is not None:
                raise RuleError("a link is there or not", allowed="neither kind nor notice", at=("links", name))
        return self

    def manner(self, entry: OutageModel) -> tuple[Kind, float]:
        """How what the entry is of goes, and with how many seconds' notice."""
        kind = entry.kind or self.kind
        return kind, 0.0 if kind != "preemption" else self.notice if entry.notice is None else entry.notice

    def reads(self, key: Literal["kind", "notice"]) -> bool:
        """Whether anything has that as it is stated for all."""
        entries = [*self.workers.values(), *self.clouds.values(), *self.servers.values()]
        return any(
            getattr(entry, key) is None and (key == "kind" or self.manner(entry)[0] == "preemption")
            for entry in entries
        )

    def check(self, cluster: Cluster, duration: float | None) -> None:
        """Raise RuleError for workers, clouds and links that are not there, or cannot be down, in a run of so long."""
        clouds = [cloud.name for cloud in cluster.clouds]
        for name in self.workers:
            _check_name("worker", name, [worker.name for worker in cluster.workers], at=("workers", name))
        for name in self.clouds:
            _check_name("cloud", name, clouds, at=("clouds", name))
        for name, entry in self.links.items():
            links = links_named(name, clouds)
            _check_name("link", name, [*links], at=("links", name))
            for a, b in chain.from_iterable(links[each] for each in links if fnmatchcase(each, name)):
                bandwidth, _ = cluster.wan_path(a, b)
                if bandwidth is None:
                    problem = f"the path from '{a}' to '{b}' has no bandwidth that could be 0 meanwhile"
                    raise RuleError(problem, allowed="with cluster.wan.bandwidth, or its own", at=("links", name))
                if duration is None and (entry.is_endless or bandwidth.repeat is not None):
                    problem = "goes on without end, and nothing says how long the run is"
                    raise RuleError(problem, allowed="with duration", at=("links", name))


def links_named(key: str, clouds: Sequence[str]) -> Mapping[str, Sequence[Direction]]:
    """What the key of an entry, or a pattern of such, may name: directions apart, if it says so, or both together."""
    if ">" in key:
        return {f"{a}>{b}": [(a, b)] for a, b in permutations(clouds, 2)}
    pairs = {f"{a}-{b}": [(a, b), (b, a)] for a, b in combinations(clouds, 2)}
    reverse = {f"{b}-{a}": [(a, b), (b, a)] for a, b in combinations(clouds, 2)}
    return {key: reverse[key]} if key in reverse and key not in pairs else pairs


def owners(entries: Mapping[str, OutageModel], names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The names that each entry is of: its own one, or what its pattern stands for and no entry before it is of."""
    found: dict[str, list[str]] = {key: [] for key in entries}
    for name in names:
        key = name if name in entries else next((key for key in entries if fnmatchcase(name, key)), None)
        if key is not None:
            found[key].append(name)
    return found


def _check_name(what: str, name: str, names: Sequence[str], at: tuple[str, ...]) -> None:
    if not any(fnmatchcase(each, name) for each in names):
        problem = f"there is no {what} '{name}'{did_you_mean(name, names)}"
        raise RuleError(problem, allowed=listed(names) or "none, there is one cloud", at=at)
