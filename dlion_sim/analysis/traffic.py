"""Traffic of directed links, and the utilization of their routes: NICs, LANs and paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain, takewhile

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlion_sim.analysis.outages import path_outages
from dlion_sim.errors import InputError
from dlion_sim.results import LINKS, Run
from dlion_sim.results.run_folder import SCENARIO
from dlion_sim.scenario import Scenario, Schedule, load
from dlion_sim.scenario.availability import Direction, links_of
from dlion_sim.scenario.machines import Nic
from dlion_sim.scenario.system import ServerHost, hosts_of

_BITS = 8
_EMPTY = pd.DataFrame({"sender": [], "receiver": [], "crossed": [], "full": []})


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
    """The ends (s) of the intervals of the links' rows, by sender; intervals without traffic have no row.

    Live nodes of a run that others may join have own times, besides those of evaluations.
    """
    evaluated = {*run.evaluations()["virtual_time"]} - {0.0}
    times = run.links().groupby("sender")["virtual_time"]
    return {int(str(sender)): sorted({*own} | evaluated) for sender, own in times}


def mean_rates(run: Run) -> pd.DataFrame:
    """A row for each link over the whole run: `sender`, `receiver`, `bytes`, `wan_bytes`, `rate` (bps) and `n_percent`.

    The last is the mean N of Max-N over the messages that have one; NaN if none has.
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
    """`wan_bytes` and `bytes_sent` of all participants until a time (s)."""
    links = run.links()
    sent = links.loc[links["virtual_time"] <= seconds, ["wan_bytes", "bytes"]].sum()
    return {"wan_bytes": int(sent["wan_bytes"]), "bytes_sent": int(sent["bytes"])}


Capacities = npt.NDArray[np.float64]
"""Means over intervals, in bits per second."""


def capacities(
    run: Run, links: Sequence[tuple[int, int]], edges: Sequence[float]
) -> list[list[tuple[str, Capacities]]] | None:
    """The route of each (sender, receiver): names of links and their mean capacities from edge to edge (s).

    None if capacities are unknown, as in `utilization`.
    """
    routes = _routes(run, links, edges[-1])
    if routes is None:
        return None
    means = {name: _means(capacity, edges) for name, capacity in _by_name(routes).items()}
    return [[(name, means[name]) for name, _ in route] for route in routes]


def _means(capacity: Schedule, edges: Sequence[float]) -> Capacities:
    steps = takewhile(lambda step: step[0] < edges[-1], capacity.changes())
    begins, values = zip((0.0, capacity.value_at(0.0)), *steps, strict=True)
    times = np.array([*begins, edges[-1]])
    carried = np.concatenate([[0.0], np.cumsum(np.diff(times) * values)])
    means: Capacities = np.diff(np.interp(edges, times, carried)) / np.diff(edges)
    return means


def utilization(run: Run) -> pd.DataFrame:
    """A row for each (sender, receiver) and each link on its route: `sender`, `receiver`, `crossed`, `full`.

    `crossed` is the link's name, e.g. "uplink of east/0" or "path from east to west", and `full` the share (fraction)
    of its mean capacity that all messages took over the whole run, without headers and acknowledgements. Outages of
    paths count as a capacity of 0.

    Left out are links without a stated capacity, those between the switches of a fabric and, if the manifest lacks the
    outages of paths as there are too many, all paths that may have some. Empty if capacities are unknown: of a live
    run, and of one whose scenario cannot be read.
    """
    end = _end(run)
    rates = mean_rates(run)[["sender", "receiver", "rate"]]
    routes = _routes(run, list(zip(rates["sender"].tolist(), rates["receiver"].tolist(), strict=True)), end)
    if routes is None:
        return _EMPTY
    means = {name: capacity.mean(end) for name, capacity in _by_name(routes).items()}
    rows = [(*row, name) for row, route in zip(rates.itertuples(index=False), routes, strict=True) for name, _ in route]
    crossed = pd.DataFrame(rows, columns=["sender", "receiver", "rate", "crossed"])
    loads = crossed.groupby("crossed")["rate"].transform("sum")
    return crossed.assign(full=loads / crossed["crossed"].map(means))[["sender", "receiver", "crossed", "full"]]


def modelled_scenario(run: Run) -> Scenario | None:
    """The scenario of a run with modelled links; None for a live run, and if it cannot be read."""
    if run.manifest.get("way") == "live":
        return None
    try:
        return load(run.folder / SCENARIO)
    except InputError:  # of another version, perhaps
        return None


_Machine = tuple[str, str, Nic]
"""Name, cloud and NIC."""


def _machines(scenario: Scenario) -> list[_Machine]:
    """The machines of the workers and then of the parameter servers."""
    machines = [(worker.name, worker.cloud, worker.nic) for worker in scenario.cluster.workers]
    servers = [
        (f"server {len(machines) + number}", host.cloud, host.nic) if isinstance(host, ServerHost) else machines[host]
        for number, host in enumerate(hosts_of(scenario.system.topology))
    ]
    return [*machines, *servers]


_Route = list[tuple[str, Schedule]]
"""Links by name, and their capacities."""


def _routes(run: Run, links: Sequence[tuple[int, int]], until: float) -> list[_Route] | None:
    """The route of each (sender, receiver), with capacities up to a time (s); None if capacities are unknown."""
    scenario = modelled_scenario(run)
    if scenario is None:
        return None
    machines = _machines(scenario)
    if (most := max(map(max, links), default=0)) >= len(machines):
        raise InputError(f"names machine {most}", file=run.folder / LINKS.file, allowed=f"0 to {len(machines) - 1}")
    path = cache(_paths(run, scenario, until))
    return [_route(scenario, path, machines[sender], machines[receiver]) for sender, receiver in links]


_Path = Callable[[str, str], Schedule | None]


def _paths(run: Run, scenario: Scenario, until: float) -> _Path:
    """The capacity from a cloud to another one, up to a time (s); None if it is unlimited or unknown."""
    outages = path_outages(run)
    # A manifest has the outages of all paths or, if there are too many, no such key.
    unknown = frozenset() if "paths_down" in run.manifest else _paths_that_may_fail(scenario)

    def capacity_of(a: str, b: str) -> Schedule | None:
        capacity, _ = scenario.cluster.wan_path(a, b)
        if capacity is None or (a, b) in unknown:
            return None
        try:
            return capacity.interrupted(outages[a, b], until) if (a, b) in outages else capacity
        except ValueError:  # in a damaged manifest
            return None

    return capacity_of


def _paths_that_may_fail(scenario: Scenario) -> frozenset[Direction]:
    entries = scenario.availability.links if scenario.availability else {}
    of_entries = links_of(entries, [cloud.name for cloud in scenario.cluster.clouds])
    return frozenset(chain.from_iterable(chain.from_iterable(links.values()) for links in of_entries.values()))


def _by_name(routes: Sequence[_Route]) -> dict[str, Schedule]:
    return {name: capacity for route in routes for name, capacity in route}


def _route(scenario: Scenario, path: _Path, sender: _Machine, receiver: _Machine) -> _Route:
    """The links with a capacity that a message crosses; none within a machine."""
    if sender[0] == receiver[0]:
        return []
    if sender[1] == receiver[1]:
        cloud = next(cloud for cloud in scenario.cluster.clouds if cloud.name == sender[1])
        between, capacity = f"LAN of {cloud.name}", cloud.lan.bandwidth
    else:
        between = f"path from {sender[1]} to {receiver[1]}"
        capacity = path(sender[1], receiver[1])
    middle = [] if capacity is None else [(between, capacity)]
    return [(f"uplink of {sender[0]}", sender[2].up), *middle, (f"downlink of {receiver[0]}", receiver[2].down)]


def _end(run: Run) -> float:
    return float(max(run.metrics()["virtual_time"].max(), run.links()["virtual_time"].max()))
