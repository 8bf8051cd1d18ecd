"""Settings of a scenario without effect, which are refused as overrides; those that mislead are warned of in files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlion_sim.errors import InputError
from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.system import ParameterServers, ServerHost
from dlion_sim.scenario.wan import MATRICES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlion_sim.scenario.overrides import Keys, Override
    from dlion_sim.scenario.scenario import Scenario


_WARNED_OF = (("cluster", "wan"), ("workload", "cost_as"))
"""Where results would be others if a file's setting had an effect. Resolved scenarios state every default elsewhere."""


def check_read(scenario: Scenario, override: Override, places: Sequence[Keys]) -> None:
    """Raise InputError, with the setting to use instead, if an override has no effect."""
    faults = [_why_unread(scenario, keys) for keys in places]
    if faults and (first := faults[0]) is not None and all(faults):
        raise override.fault(InputError(first.problem, path=".".join(map(str, places[0])), allowed=first.allowed))


def unread(scenario: Scenario, data: object, keys: Keys = ()) -> Iterator[tuple[Keys, RuleError]]:
    """The misleading parts of a file's data, which have no effect, and the settings to use instead."""
    if data is None or keys[:2] not in {place[: len(keys)] for place in _WARNED_OF}:
        return
    if keys and (fault := _why_unread(scenario, keys)):
        yield keys, fault
        return
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield from unread(scenario, value, (*keys, key))


def _why_unread(scenario: Scenario, keys: Sequence[str | int]) -> RuleError | None:
    clouds = scenario.cluster.clouds
    match [*keys]:
        case [("cluster" | "prices"), ("wan" | "egress"), *_] if len(clouds) == 1:
            return RuleError(
                "nothing reads it: with one cloud nothing crosses a WAN", allowed="with two or more clouds"
            )
        case ["cluster", "wan", *place] if place and not scenario.cluster.paths.reads(tuple(place)):
            return _hidden(scenario, place)
        case ["cluster", "clouds", int(number), "lan", _, *_] if _machines(scenario, number) == 1:
            name = clouds[number].name
            return RuleError(f"nothing reads it: '{name}' has one machine", allowed="its nic, or cluster.wan")
        case ["workload", "cost_as", "flops"] if scenario.workload.compute_time.beta is not None:
            return RuleError("nothing reads it: workload.compute_time has a beta", allowed="workload.compute_time.beta")
        case ["network", "model", "paths"] if scenario.cluster.first_fabric is None:
            return RuleError("nothing reads it: no cloud has a fabric", allowed="with a lan that has one")
        case ["availability", ("kind" | "notice") as key] if (given := scenario.availability) and not given.reads(key):
            entries = "entry" if key == "kind" else "preemption"
            return RuleError(f"nothing reads it: no {entries} is without its own", allowed=f"the entries' {key}")
        case _:
            return None


def _hidden(scenario: Scenario, place: Sequence[str | int]) -> RuleError | None:
    """The fault of a place in the WAN that other settings override."""
    wan = scenario.cluster.wan
    match place:
        case [("bandwidth" | "rtt" | "loss") as key]:
            matrix = MATRICES.get(key)
            if wan and matrix and getattr(wan, matrix):
                where = f"cluster.wan.{matrix}" + (" and cluster.wan.paths" if wan.paths else "")
                return RuleError(f"nothing reads it: {where} state the {key} of each path", allowed=where)
            return RuleError(
                f"nothing reads it: all of cluster.wan.paths have their own {key}",
                allowed=f"cluster.wan.paths.*.{key}, of all these at once",
            )
        case ["matrix" | "rtt_matrix", cell, *_] if cell in {cloud.name for cloud in scenario.cluster.clouds}:
            return RuleError("nothing reads it: that path is in cluster.wan.paths, with its own", allowed="that one")
        case ["paths", _] | ["paths", _, "bandwidth" | "rtt" | "loss"]:
            problem = "nothing reads it: all of its paths are listed by name too, or in a matrix"
            return RuleError(problem, allowed="those")
    return None


def _machines(scenario: Scenario, number: int) -> int:
    cloud = scenario.cluster.clouds[number]
    topology = scenario.system.topology
    hosts = topology.hosts if isinstance(topology, ParameterServers) else []
    servers = [host for host in hosts if isinstance(host, ServerHost) and host.cloud == cloud.name]
    return sum(group.count for group in cloud.workers) + len(servers)
