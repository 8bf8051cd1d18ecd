"""What each directed link carried, and how full its way was: its sender's and receiver's NICs, and what is between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlion_sim.errors import InputError
from dlion_sim.results import Run
from dlion_sim.results.run_folder import LINKS, SCENARIO
from dlion_sim.scenario import Scenario, Schedule, load
from dlion_sim.scenario.machines import Nic
from dlion_sim.scenario.system import ParameterServers, ServerHost

_BITS = 8
_NOTHING = pd.DataFrame({"sender": [], "receiver": [], "crossed": [], "full": []})


def interval_rates(run: Run) -> pd.DataFrame:
    """The links' rows with `begin` (s) of the interval that each ends, and `rate` over that (bits per second)."""
    links = run.links()
    begins: dict[tuple[int, float], float] = {}
    for sender, ends in interval_ends(run).items():
        begins |= {(sender, end): begin for begin, end in zip([0.0, *ends], ends, strict=False)}
    keys = zip(links["sender"], links["virtual_time"], strict=True)
    begin = pd.Series([begins.get(key, 0.0) for key in keys], index=links.index, dtype=float)
    return links.assign(begin=begin, rate=_BITS * links["bytes"] / (links["virtual_time"] - begin))


def interval_ends(run: Run) -> Mapping[int, Sequence[float]]:
    """When the intervals of the links' rows end (s), by sender; one in which it sent nothing has no row.

    Live nodes whose run is open to newcomers have times of their own, besides those of evaluations.
    """
    evaluated = {*run.evaluations()["virtual_time"]} - {0.0}
    times = run.links().groupby("sender")["virtual_time"]
    return {int(str(sender)): sorted({*own} | evaluated) for sender, own in times}


def mean_rates(run: Run) -> pd.DataFrame:
    """A row a link, over the whole run: `sender`, `receiver`, `bytes`, `wan_bytes`, `rate` (bps) and `n_percent`.

    The last is N of Max-N, the mean over the messages that have one; NaN where none has.
    """
    links = run.links()
    weights = links["gradients"].where(links["n_percent"].notna(), 0)
    links = links.assign(weight=weights, weighted=links["n_percent"].fillna(0) * weights)
    sums = links.groupby(["sender", "receiver"], as_index=False)[["bytes", "wan_bytes", "weight", "weighted"]].sum()
    return sums[["sender", "receiver", "bytes", "wan_bytes"]].assign(
        rate=_BITS * sums["bytes"] / _end(run),
        n_percent=sums["weighted"] / sums["weight"].where(sums["weight"] > 0),
    )


def sent_until(run: Run, seconds: float) -> dict[str, int]:
    """`wan_bytes` and `bytes_sent`, which all had sent by a time (s)."""
    links = run.links()
    sent = links.loc[links["virtual_time"] <= seconds, ["wan_bytes", "bytes"]].sum()
    return {"wan_bytes": int(sent["wan_bytes"]), "bytes_sent": int(sent["bytes"])}


Capacities = npt.NDArray[np.float64]
"""Means over intervals, in bits per second."""


def capacities(
    run: Run, links: Sequence[tuple[int, int]], edges: Sequence[float]
) -> list[list[tuple[str, Capacities]]] | None:
    """What the messages of each link (sender, receiver) cross, by name, and its mean capacity from edge to edge (s).

    None where capacities are not known, as of `crossings`.
    """
    scenario = modelled_scenario(run)
    if scenario is None:
        return None
    places = _places(scenario)
    _check_machines(run, max(map(max, links), default=0), places)
    known: dict[str, Capacities] = {}
    found = []
    for sender, receiver in links:
        way = _way(scenario, places[sender], places[receiver])
        for name, capacity in way:
            if name not in known:
                known[name] = _means(capacity, edges)
        found.append([(name, known[name]) for name, _ in way])
    return found


def _means(capacity: Schedule, edges: Sequence[float]) -> Capacities:
    steps = takewhile(lambda step: step[0] < edges[-1], capacity.changes())
    begins, values = zip((0.0, capacity.value_at(0.0)), *steps, strict=True)
    times = np.array([*begins, edges[-1]])
    carried = np.concatenate([[0.0], np.cumsum(np.diff(times) * values)])
    means: Capacities = np.diff(np.interp(edges, times, carried)) / np.diff(edges)
    return means


def crossings(run: Run) -> pd.DataFrame:
    """A row a link and a thing that its messages cross: `sender`, `receiver`, `crossed`, `full`.

    `crossed` says what it is, e.g. "uplink of east/0" or "path from east to west", and `full` which part (fraction) of
    its mean capacity the messages of all links took, over the whole run. Headers and acknowledgements, which take some
    more, don't count. What has no stated capacity is left out. There are no rows where capacities are not known: of a
    live run, and of one whose scenario cannot be read.
    """
    scenario = modelled_scenario(run)
    if scenario is None:
        return _NOTHING
    end = _end(run)
    places = _places(scenario)
    rates = mean_rates(run)
    _check_machines(run, int(rates[["sender", "receiver"]].to_numpy().max(initial=0)), places)
    means: dict[str, float] = {}
    rows = []
    for sender, receiver, rate in rates[["sender", "receiver", "rate"]].itertuples(index=False):
        for name, capacity in _way(scenario, places[sender], places[receiver]):
            if name not in means:
                means[name] = capacity.mean(end)
            rows.append((sender, receiver, name, rate))
    crossed = pd.DataFrame(rows, columns=["sender", "receiver", "crossed", "rate"])
    loads = crossed.groupby("crossed")["rate"].transform("sum")
    return crossed.assign(full=loads / crossed["crossed"].map(means)).drop(columns="rate")


def modelled_scenario(run: Run) -> Scenario | None:
    """The scenario that a run's links are of; None where they are real ones, or it cannot be read."""
    if run.manifest.get("way") == "live":
        return None
    try:
        return load(run.folder / SCENARIO)
    except InputError:  # of another version, perhaps
        return None


_Place = tuple[str, str, Nic]
"""A machine, its cloud, and its NIC."""


def _places(scenario: Scenario) -> list[_Place]:
    """Of the workers, and after them of the parameter servers."""
    places = [(worker.name, worker.cloud, worker.nic) for worker in scenario.cluster.workers]
    topology = scenario.system.topology
    hosts = topology.hosts if isinstance(topology, ParameterServers) else ()
    servers = [
        (f"server {len(places) + number}", host.cloud, host.nic) if isinstance(host, ServerHost) else places[host]
        for number, host in enumerate(hosts)
    ]
    return [*places, *servers]


def _check_machines(run: Run, most: int, places: Sequence[_Place]) -> None:
    if most >= len(places):
        raise InputError(f"tells of machine {most}", file=run.folder / LINKS, allowed=f"0 to {len(places) - 1}")


def _way(scenario: Scenario, sender: _Place, receiver: _Place) -> list[tuple[str, Schedule]]:
    """What a message crosses, as far as that has a capacity: nothing on one machine."""
    if sender[0] == receiver[0]:
        return []
    if sender[1] == receiver[1]:
        cloud = next(cloud for cloud in scenario.cluster.clouds if cloud.name == sender[1])
        between, capacity = f"LAN of {cloud.name}", cloud.lan.bandwidth
    else:
        between = f"path from {sender[1]} to {receiver[1]}"
        capacity, _ = scenario.cluster.wan_path(sender[1], receiver[1])
    middle = [] if capacity is None else [(between, capacity)]
    return [(f"uplink of {sender[0]}", sender[2].up), *middle, (f"downlink of {receiver[0]}", receiver[2].down)]


def _end(run: Run) -> float:
    return float(max(run.metrics()["virtual_time"].max(), run.links()["virtual_time"].max()))
