"""What runs cost on the way, and what they would have cost at other prices."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from dlion_sim.analysis.outages import absences
from dlion_sim.errors import InputError
from dlion_sim.results import Run, Tariff, cost_of
from dlion_sim.results.cost import GB, machines_cost, unpaid
from dlion_sim.results.json_document import JsonDocument
from dlion_sim.results.run_folder import MANIFEST, SCENARIO, SUMMARY
from dlion_sim.scenario import from_data, tariff

_OF_CATALOG = ("price", "watts", "carbon")
"""What of a machine a catalog tells, besides what it is."""


def costs_until(run: Run, times: Sequence[float]) -> list[float]:
    """What a run would have cost in all, had it ended at each of some times (s).

    Raises InputError where it has no prices.
    """
    prices = _tariff(run)
    egress = _egress(run, prices)
    sent = np.concatenate([[0.0], egress])[np.searchsorted(egress.index, times, side="right")]
    gone = absences(run)
    machines = [machines_cost(prices, time, unpaid(prices, time, gone)) for time in times]
    return [one + float(other) for one, other in zip(machines, sent, strict=True)]


def at_prices_of(run: Run, catalog: str) -> Run:
    """The run at the prices that another catalog, by name or file, has of its instances.

    Raises InputError where it names none, or the catalog does not have one.
    """
    file = run.folder / SCENARIO
    data = copy.deepcopy(run.scenario)
    try:
        instances = [machine for machine in _machines(data) if machine.get("instance")]
        data["prices"] = {**(data.get("prices") or {}), "catalog": catalog}
    except (AttributeError, KeyError, TypeError):
        raise InputError("holds no clouds with workers", file=file) from None
    if not instances:
        raise InputError("names no instances", file=file, allowed="runs whose workers have an `instance`")
    for machine in instances:
        for key in _OF_CATALOG:
            machine.pop(key, None)
    try:
        prices = tariff(from_data(data, file=file, of_run=True))
    except InputError as error:
        raise (error if error.path != "prices.catalog" else _of_argument(error, catalog)) from None
    manifest = JsonDocument({**run.manifest, "tariff": prices}, run.folder / MANIFEST)
    repriced = replace(run, manifest=manifest)
    if run.summary is None:
        return repriced
    try:
        cost = cost_of(_tariff(repriced), run.summary["virtual_seconds"], _carried(run), absences(run))
    except KeyError:
        raise InputError("are not those of its scenario", file=run.folder / MANIFEST, path="clouds") from None
    return replace(repriced, summary=JsonDocument({**run.summary, "cost": cost}, run.folder / SUMMARY))


def _of_argument(error: InputError, catalog: str) -> InputError:
    return InputError(error.problem, file=f"`catalog` {catalog}", allowed=error.allowed)


def _machines(scenario: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Groups of workers, and parameter servers' own machines, of a resolved scenario."""
    system = scenario.get("system")
    topology = system.get("topology") if isinstance(system, dict) else None
    hosts = (topology or {}).get("hosts", ())
    groups = chain.from_iterable(cloud["workers"] for cloud in scenario["cluster"]["clouds"])
    return (machine for machine in chain(groups, hosts) if isinstance(machine, dict))


def _tariff(run: Run) -> Tariff:
    prices: Tariff | None = run.manifest.get("tariff")
    if prices is None:
        raise InputError("has no prices", file=run.folder, allowed="runs of scenarios with prices")
    return prices


def _between_clouds(run: Run) -> pd.DataFrame:
    """What links carried between clouds: `virtual_time` (s), `a`, `b` and `bytes`."""
    links = run.links()
    links = links.assign(a=links["sender_cloud"].astype(object), b=links["receiver_cloud"].astype(object))
    return links.loc[links["wan_bytes"] > 0, ["virtual_time", "a", "b", "bytes"]]


def _carried(run: Run) -> dict[tuple[str, str], int]:
    sums = _between_clouds(run).groupby(["a", "b"], as_index=False)["bytes"].sum()
    return {(str(a), str(b)): int(size) for a, b, size in sums[["a", "b", "bytes"]].itertuples(index=False)}


def _egress(run: Run, prices: Tariff) -> pd.Series[float]:
    """What traffic between clouds had cost by the times (s) at which some was sent."""
    per_gb = prices["egress"]
    if per_gb is None:
        return pd.Series(dtype=float)
    links = _between_clouds(run)
    paid = [per_gb.get(a, {}).get(b) for a, b in zip(links["a"], links["b"], strict=True)]
    if None in paid:
        raise InputError("does not tell all prices", file=run.folder / MANIFEST, path="tariff.egress")
    costs: pd.Series[float] = links["bytes"] * np.array(paid, dtype=float) / GB
    return costs.groupby(links["virtual_time"]).sum().sort_index().cumsum()
