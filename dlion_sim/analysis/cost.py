"""The cost of runs until some time, and at other prices."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from dlion_sim.analysis.outages import process_outages
from dlion_sim.errors import InputError
from dlion_sim.results import Run, Tariff, cost_of
from dlion_sim.results.cost import GB, machines_cost, unpaid
from dlion_sim.results.json_document import JsonDocument
from dlion_sim.results.run_folder import MANIFEST, SCENARIO, SUMMARY
from dlion_sim.scenario import from_data, tariff

_CATALOG_KEYS = ("price", "watts", "carbon")
"""Keys of a machine that come from the catalog, besides its hardware."""


def costs_until(run: Run, times: Sequence[float]) -> list[float]:
    """The total cost of a run if it had ended at each of some times (s). Raises InputError without prices."""
    prices = _tariff(run)
    egress = _egress(run, prices)
    sent = np.concatenate([[0.0], egress])[np.searchsorted(egress.index, times, side="right")]
    outages = process_outages(run)
    machines = [machines_cost(prices, time, unpaid(prices, time, outages)) for time in times]
    return [one + float(other) for one, other in zip(machines, sent, strict=True)]


def at_prices_of(run: Run, catalog: str) -> Run:
    """The run at the prices of another catalog, by name or file.

    Raises InputError if the run names no instances, or the catalog lacks one.
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
        for key in _CATALOG_KEYS:
            machine.pop(key, None)
    try:
        prices = tariff(from_data(data, file=file, of_run=True))
    except InputError as error:
        if error.path != "prices.catalog":
            raise
        raise InputError(error.problem, file=f"`catalog` {catalog}", allowed=error.allowed) from None
    manifest = JsonDocument({**run.manifest, "tariff": prices}, run.folder / MANIFEST)
    repriced = replace(run, manifest=manifest)
    if run.summary is None:
        return repriced
    try:
        cost = cost_of(_tariff(repriced), run.summary["virtual_seconds"], _carried(run), process_outages(run))
    except KeyError:
        raise InputError("are not those of its scenario", file=run.folder / MANIFEST, path="clouds") from None
    return replace(repriced, summary=JsonDocument({**run.summary, "cost": cost}, run.folder / SUMMARY))


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
    """Bytes between clouds: `virtual_time` (s), `a`, `b` and `bytes`."""
    links = run.links()
    links = links.assign(a=links["sender_cloud"].astype(object), b=links["receiver_cloud"].astype(object))
    return links.loc[links["wan_bytes"] > 0, ["virtual_time", "a", "b", "bytes"]]


def _carried(run: Run) -> dict[tuple[str, str], int]:
    sums = _between_clouds(run).groupby(["a", "b"], as_index=False)["bytes"].sum()
    return {(str(a), str(b)): int(size) for a, b, size in sums[["a", "b", "bytes"]].itertuples(index=False)}


def _egress(run: Run, prices: Tariff) -> pd.Series[float]:
    """The cost of traffic between clouds so far, by the time (s)."""
    per_gb = prices["egress"]
    if per_gb is None:
        return pd.Series(dtype=float)
    links = _between_clouds(run)
    paid = [per_gb.get(a, {}).get(b) for a, b in zip(links["a"], links["b"], strict=True)]
    if None in paid:
        raise InputError("lacks a price", file=run.folder / MANIFEST, path="tariff.egress")
    costs: pd.Series[float] = links["bytes"] * np.array(paid, dtype=float) / GB
    return costs.groupby(links["virtual_time"]).sum().sort_index().cumsum()
