"""Changes of the scenario's own machines, to simulate the winner with: links, clouds, machines, batch size."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

from dlion_sim.recommend.candidates import ALONE, Candidate
from dlion_sim.recommend.data_placement import data_are_local
from dlion_sim.scenario import DURATION, Scenario, Schedule, Wan
from dlion_sim.scenario.capacity import UNLIMITED
from dlion_sim.scenario.loading import to_data

MOST_CLOUDS = 4
"""Maximum number of clouds that are changed: those with the most workers."""


def own_changes(scenario: Scenario, winner: Candidate) -> Iterator[tuple[str, Candidate]]:
    """The changes, as text, with the changed winner; its scenario may be invalid."""
    clouds = [cloud.name for cloud in scenario.cluster.clouds]
    largest = sorted(clouds, key=lambda name: -_workers(scenario, {name}))[:MOST_CLOUDS]
    changed = [name for name in clouds if name in largest]
    for name in changed[:1] if len(clouds) == 2 else changed:
        if wan := _wan(scenario, {*clouds}, wider=name):
            where = "the WAN" if len(clouds) == 2 else f"the WAN of {name}"
            yield f"twice {where}", _with(winner, f"twice.the.wan-{name}", {"cluster.wan": wan})
    if len(clouds) > 1 and not data_are_local(scenario):
        for name in changed:
            yield _without(scenario, winner, name)
    for name in changed:
        yield f"one more machine in {name}", _with_one_more(scenario, winner, name)
    size = scenario.workload.batch_size
    for what, other in (("twice the batch size", 2 * size), ("half the batch size", size // 2)):
        if other:
            yield f"{what} ({other})", _with(winner, f"batch{other}", {"workload.batch_size": other})


def _with(winner: Candidate, name: str, values: dict[str, Any], per_hour: float = 0.0, **labels: str) -> Candidate:
    """The winner with other values, and a higher price."""
    return replace(
        winner,
        name=f"{winner.name}-{name}",
        labels={**winner.labels, **labels},
        values={**winner.values, **values},
        per_hour=winner.per_hour + per_hour,
    )


def _without(scenario: Scenario, winner: Candidate, name: str) -> tuple[str, Candidate]:
    """Without a cloud; a single worker that remains is alone."""
    others = {cloud.name for cloud in scenario.cluster.clouds} - {name}
    clouds = [cloud for cloud in to_data(scenario)["cluster"]["clouds"] if cloud["name"] in others]
    wan = _wan(scenario, others) if len(others) > 1 else None
    saved = sum(group.count * (group.price or 0.0) for group in _groups(scenario, name))
    values: dict[str, Any] = {"cluster.clouds": clouds, "cluster.wan": wan}
    labels = {}
    if _workers(scenario, others) == 1:
        values["system"], labels = {"name": "baseline"}, {"system": ALONE}
    what = f"all clouds but {name}" + (", a single worker" if labels else "")
    return what, _with(winner, f"without-{name}", values, -saved, **labels)


def _with_one_more(scenario: Scenario, winner: Candidate, name: str) -> Candidate:
    """One more machine of the most frequent kind in a cloud."""
    clouds = copy.deepcopy(to_data(scenario)["cluster"]["clouds"])
    groups = _groups(scenario, name)
    most = max(range(len(groups)), key=lambda number: groups[number].count)
    next(cloud for cloud in clouds if cloud["name"] == name)["workers"][most]["count"] = groups[most].count + 1
    labels = {"system": "baseline"} if winner.labels["system"] == ALONE else {}
    return _with(winner, f"one.more-{name}", {"cluster.clouds": clouds}, groups[most].price or 0.0, **labels)


def _groups(scenario: Scenario, name: str) -> Any:
    return next(cloud.workers for cloud in scenario.cluster.clouds if cloud.name == name)


def _workers(scenario: Scenario, clouds: set[str]) -> int:
    return sum(group.count for name in clouds for group in _groups(scenario, name))


def _wan(scenario: Scenario, clouds: set[str], wider: str | None = None) -> dict[str, Any] | None:
    """The paths between some clouds, those of one with twice the bandwidth; None if that has no limited path."""
    paths, changes = [], wider is None
    names = [cloud.name for cloud in scenario.cluster.clouds if cloud.name in clouds]
    for a, b in permutations(names, 2):
        bandwidth, rtt = scenario.cluster.wan_path(a, b)
        if bandwidth is not None and wider in (a, b):
            bandwidth, changes = doubled(bandwidth), True
        limit = UNLIMITED if bandwidth is None else bandwidth
        path = {"from": a, "to": b, "bandwidth": limit, "rtt": DURATION.format(rtt)}
        paths.append({**path, "loss": loss} if (loss := scenario.cluster.wan_loss(a, b)) else path)
    if not changes:
        return None
    return Wan.model_validate({"paths": paths}).model_dump(mode="json", by_alias=True, exclude_none=True)


def doubled(bandwidth: Schedule) -> Schedule:
    """The bandwidth times two."""
    return Schedule(tuple((time, 2 * value) for time, value in bandwidth.steps), bandwidth.repeat)
