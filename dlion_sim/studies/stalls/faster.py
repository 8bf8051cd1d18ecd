"""Scenarios with one link or machine twice as fast."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import reduce
from operator import getitem
from typing import Any, get_args

import pandas as pd

from dlion_sim.analysis.stalls.attribution import LINKS, Stalls
from dlion_sim.analysis.traffic import utilization
from dlion_sim.results import participants
from dlion_sim.scenario import BANDWIDTH, CORES, from_data
from dlion_sim.scenario.wan import Key

Data = dict[str, Any]
FACTOR = 2
_MACHINE = "machine of "
_OF_PATHS: tuple[Key, ...] = get_args(Key)
_UNITS = {"bps": BANDWIDTH, "cores": CORES}


def longest_waits(stalls: Stalls) -> list[str]:
    """The links (named as by `utilization`) and machines ("machine of east/0") that workers wait for, longest waits
    first.

    A wait for a message counts for the fullest link on its route that `utilization` has.
    """
    routes = utilization(stalls.run).sort_values("full", ascending=False, kind="stable")
    fullest = routes.drop_duplicates(["sender", "receiver"])
    waits = stalls.waits
    of_links = waits[waits["kind"].isin(LINKS)].merge(fullest, on=["sender", "receiver"])
    slow = waits[waits["kind"] == "straggler"]
    names = participants(stalls.run.manifest)
    of_machines = slow.assign(crossed=[f"{_MACHINE}{names[sender]}" for sender in slow["sender"]])
    seconds = pd.concat([of_links, of_machines]).groupby("crossed", sort=False)["seconds"].sum()
    return [str(name) for name in seconds.sort_values(ascending=False, kind="stable").index]


def with_faster(data: Data, name: str) -> Data:
    """The scenario's resolved data with a link or machine, as named by `longest_waits`, twice as fast."""
    data = copy.deepcopy(data)
    match name.split(" "):
        case ["path", "from", sender, "to", receiver]:
            _speed_path(data, sender, receiver)
        case ["LAN", "of", cloud]:
            lan = next(each for each in data["cluster"]["clouds"] if each["name"] == cloud)["lan"]
            lan["bandwidth"] = _faster(lan["bandwidth"])
        case [("uplink" | "downlink") as link, "of", "server", number]:
            workers = sum(group["count"] for cloud in data["cluster"]["clouds"] for group in cloud["workers"])
            _speed_nic(data["system"]["topology"]["hosts"][int(number) - workers], link)
        case [("uplink" | "downlink") as link, "of", worker]:
            _speed_nic(_own_group(data, worker), link)
        case ["machine", "of", worker]:
            machine = _own_group(data, worker)["compute"]
            machine["cores"] = _faster(machine["cores"])
        case _:
            raise ValueError(f"unknown resource: {name}")
    return data


def _speed_path(data: Data, sender: str, receiver: str) -> None:
    """Make one direction faster: a path of its own, with what is stated for it."""
    wan, stated = data["cluster"]["wan"], from_data(data).cluster.paths.stated
    found = ((key, stated(key, sender, receiver)) for key in _OF_PATHS)
    own: Data = {key: reduce(getitem, place[0], wan) for key, place in found if place}
    others: list[Data] = []
    for path in wan.get("paths", []):
        if {*path.get("between", ())} == {sender, receiver}:
            rest = {key: value for key, value in path.items() if key != "between"}
            others.append({"from": receiver, "to": sender, **rest})
        elif (path.get("from"), path.get("to")) != (sender, receiver):
            others.append(path)
    wan["paths"] = [*others, {"from": sender, "to": receiver, **own, "bandwidth": _faster(own["bandwidth"])}]


def _speed_nic(machine: Data, link: str) -> None:
    direction = {"uplink": "up", "downlink": "down"}[link]
    machine["nic"] = {**machine["nic"], direction: _faster(machine["nic"][direction])}


def _own_group(data: Data, worker: str) -> Data:
    """The worker's own group of one, split from its group."""
    name, _, number = worker.rpartition("/")
    cloud = next(each for each in data["cluster"]["clouds"] if each["name"] == name)
    groups: Sequence[Data] = cloud["workers"]
    single = [{**copy.deepcopy(group), "count": 1} for group in groups for _ in range(group["count"])]
    cloud["workers"] = single
    return single[int(number)]


def _faster(written: Any) -> Any:
    """A capacity in the format of a resolved scenario, times the factor."""
    if isinstance(written, dict):
        return {**written, "steps": {time: _faster(value) for time, value in written["steps"].items()}}
    unit = next(each for ending, each in _UNITS.items() if written.endswith(ending))
    return unit.format(FACTOR * unit.parse(written))
