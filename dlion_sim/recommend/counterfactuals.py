"""What one more of something would bring: a machine, or bandwidth between the clouds."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Literal

from dlion_sim.recommend.candidates import ALONE, Candidate
from dlion_sim.recommend.race import Start
from dlion_sim.scenario import Scenario, Schedule, Wan

_Bandwidth = Schedule | Literal["unlimited"] | None


@dataclass(frozen=True)
class Counterfactual:
    """The winner with more of something, simulated with the first seed."""

    what: str
    start: Start


def counterfactuals(scenario: Scenario, winner: Candidate, until: float) -> list[Counterfactual]:
    """What to simulate, up to a virtual time (s): one more machine; twice the bandwidth of paths that have one."""
    larger = _with_one_more(winner)
    joined = "" if larger.labels["system"] == winner.labels["system"] else f" and {larger.system}"
    changed = {f"one more machine{joined}": larger}
    wan = scenario.cluster.wan
    if len(winner.values["cluster.clouds"]) > 1 and wan is not None and (wider := _twice(wan)) is not None:
        values = {**winner.values, "cluster.wan": wider}
        changed["twice the WAN"] = replace(winner, name=f"{winner.name}-twice.the.wan", values=values)
    return [Counterfactual(what, Start(each, 0, until)) for what, each in changed.items()]


def _with_one_more(winner: Candidate) -> Candidate:
    """In the cloud where it costs least. Who was alone then has a peer, and a system."""
    clouds: list[dict[str, Any]] = copy.deepcopy(winner.values["cluster.clouds"])
    (group,) = min((cloud["workers"] for cloud in clouds), key=lambda groups: float(groups[0]["price"]))
    group["count"] += 1
    labels = {**winner.labels, "count": f"{winner.labels['count']} and one more"}
    if winner.labels["system"] == ALONE:
        labels["system"] = winner.values["system"]["name"]
    return replace(
        winner,
        name=f"{winner.name}-one.more.machine",
        labels=labels,
        values={**winner.values, "cluster.clouds": clouds},
        per_hour=winner.per_hour + group["price"],
    )


def _twice(wan: Wan) -> dict[str, Any] | None:
    """The network between the clouds with twice its bandwidths; None where it states none."""
    paths = [path.model_copy(update={"bandwidth": _doubled(path.bandwidth)}) for path in wan.paths]
    matrix = {a: {b: _doubled(each) for b, each in row.items()} for a, row in (wan.matrix or {}).items()}
    wider = wan.model_copy(update={"bandwidth": _doubled(wan.bandwidth), "matrix": matrix or None, "paths": paths})
    if wider == wan:
        return None
    return wider.model_dump(mode="json", by_alias=True, exclude_none=True)


def _doubled(bandwidth: _Bandwidth) -> _Bandwidth:
    if not isinstance(bandwidth, Schedule):
        return bandwidth
    return Schedule(tuple((time, 2 * value) for time, value in bandwidth.steps), bandwidth.repeat)
