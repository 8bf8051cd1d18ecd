"""What if one thing that workers wait for were twice as fast: a path between micro-clouds, a NIC, or a machine."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pandas as pd

from dlion_sim.analysis.stalls.attribution import LINKS, Stalls
from dlion_sim.analysis.traffic import crossings
from dlion_sim.results import participants
from dlion_sim.scenario import BANDWIDTH, CORES

Data = dict[str, Any]
FACTOR = 2
_MACHINE = "machine of "
_UNITS = {"bps": BANDWIDTH, "cores": CORES}


def waited_for(stalls: Stalls) -> list[str]:
    """What workers wait for, the longest waits first: as `crossings` calls links, and "machine of east/0".

    A wait for a message is one for the fullest thing that the message crosses. What has no stated capacity is left out.
    """
    ways = crossings(stalls.run).sort_values("full", ascending=False, kind="stable")
    fullest = ways.drop_duplicates(["sender", "receiver"])
    waits = stalls.waits
    of_links = waits[waits["kind"].isin(LINKS)].merge(fullest, on=["sender", "receiver"])
    slow = waits[waits["kind"] == "straggler"]
    names = participants(stalls.run.manifest)
    of_machines = slow.assign(crossed=[f"{_MACHINE}{names[sender]}" for sender in slow["sender"]])
    seconds = pd.concat([of_links, of_machines]).groupby("crossed", sort=False)["seconds"].sum()
    return [str(name) for name in seconds.sort_values(ascending=False, kind="stable").index]


def with_faster(data: Data, name: str) -> Data:
    """The scenario's resolved data with that thing, by its name of `waited_for`, twice as fast."""
    data = copy.deepcopy(data)
    match name.split(" "):
        case ["path", "from", sender, "to", receiver]:
            _speed_path(data["cluster"]["wan"], sender, receiver)
        case ["LAN", "of", cloud]:
            lan = next(each for each in data["cluster"]["clouds"] if each["name"] == cloud)["lan"]
            lan["bandwidth"] = _faster(lan["bandwidth"])
        case [("uplink" | "downlink") as link, "of", "server", number]:
            workers = sum(group["count"] for cloud in data["cluster"]["clouds"] for group in cloud["workers"])
            _speed_nic(data["system"]["topology"]["hosts"][int(number) - workers], link)
        case [("uplink" | "downlink") as link, "of", worker]:
            _speed_nic(_alone(data, worker), link)
        case ["machine", "of", worker]:
            machine = _alone(data, worker)["compute"]
            machine["cores"] = _faster(machine["cores"])
        case _:
            raise ValueError(f"there is no {name}")
    return data


def _speed_path(wan: Data, sender: str, receiver: str) -> None:
    """Make one direction faster; the other stays as it is."""
    own: Data = {}
    others: list[Data] = []
    for path in wan.get("paths", []):
        ends = path.get("between") or [path["from"], path["to"]]
        said = {key: value for key, value in path.items() if key not in ("between", "from", "to")}
        if ends == [sender, receiver] or ("between" in path and ends == [receiver, sender]):
            own = said
            if "between" in path:
                others.append({"from": receiver, "to": sender, **said})
        else:
            others.append(path)
    bandwidth = own.get("bandwidth") or wan.get("matrix", {}).get(sender, {}).get(receiver) or wan["bandwidth"]
    wan["paths"] = [*others, {"from": sender, "to": receiver, **own, "bandwidth": _faster(bandwidth)}]


def _speed_nic(machine: Data, link: str) -> None:
    direction = {"uplink": "up", "downlink": "down"}[link]
    machine["nic"] = {**machine["nic"], direction: _faster(machine["nic"][direction])}


def _alone(data: Data, worker: str) -> Data:
    """The worker's group, once it has one of its own."""
    name, _, number = worker.rpartition("/")
    cloud = next(each for each in data["cluster"]["clouds"] if each["name"] == name)
    groups: Sequence[Data] = cloud["workers"]
    alone = [{**copy.deepcopy(group), "count": 1} for group in groups for _ in range(group["count"])]
    cloud["workers"] = alone
    return alone[int(number)]


def _faster(written: Any) -> Any:
    """A capacity as a resolved scenario writes it, times the factor."""
    if isinstance(written, dict):
        return {**written, "steps": {time: _faster(value) for time, value in written["steps"].items()}}
    unit = next(each for ending, each in _UNITS.items() if written.endswith(ending))
    return unit.format(FACTOR * unit.parse(written))
