"""Prices of machines and traffic, and machines rented as instances of a catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from dlion_sim.scenario.catalog import Catalog, Instance
from dlion_sim.scenario.cluster import Cluster
from dlion_sim.scenario.devices import DEVICES, GPUS
from dlion_sim.scenario.faults import RuleError, below, listed, no_such
from dlion_sim.scenario.machines import Compute, Nic, WorkerGroup
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.schedule import Schedule
from dlion_sim.scenario.system import ParameterServers, ServerHost, SystemSpec
from dlion_sim.scenario.units import Duration, PositiveDuration

Price = Annotated[float, Field(ge=0, le=1e6)]


class Billing(Model):
    """Billing of machines' time; by default as Amazon EC2."""

    step: PositiveDuration = 1.0
    """Billing increment; a started one counts in full."""
    least: Duration = 60.0
    """Minimum time billed."""


class Prices(Model):
    """Prices of machines and traffic, in any one currency."""

    catalog: str | None = None
    """Catalog of instances: a shipped one, or a CSV file with SkyPilot's columns."""
    spot: bool = False
    """Default of machines' `spot`, at the catalog's spot price or their own `price`. Preemptions are in
    `availability`."""
    egress: Price | dict[str, Price | dict[str, Price]] | None = None
    """Price of a GB (1e9 bytes) between clouds: a number; by sender, {east: 0.02, west: 0.09}; or by both, {east:
    {west: 0.02, north: 0.05}}. By default 0."""
    billing: Billing = Billing()
    """Billing of machines' time."""

    def egress_price(self, sender: str, receiver: str) -> float | None:
        """The price of a GB from one cloud to another; None without one."""
        price = self.egress.get(sender) if isinstance(self.egress, dict) else self.egress
        return price.get(receiver) if isinstance(price, dict) else price


Place = tuple[str | int, ...]
"""Keys from the scenario on."""


def with_instances(
    cluster: Cluster, system: SystemSpec, prices: Prices | None, folder: Path
) -> tuple[Cluster, SystemSpec, Prices | None]:
    """The three with the data of all instances, after which the catalog is no longer needed.

    Raises:
        RuleError: The catalog cannot be read or lacks an instance, or only some prices are stated.
    """
    given = prices or Prices()
    if given.spot or any(machine.instance is not None for _, machine in machines(cluster, system)):
        cluster, system = _resolved_all(cluster, system, given, folder)
    if prices is not None or any(machine.price is not None for _, machine in machines(cluster, system)):
        for at, machine in machines(cluster, system):
            if machine.price is None:
                raise RuleError(
                    "has no price per hour", allowed="e.g. price: 3.06, or 0; or an instance of prices.catalog", at=at
                )
    _check_egress(given, [cloud.name for cloud in cluster.clouds])
    if given.catalog is None:
        return cluster, system, prices
    return cluster, system, given.model_copy(update={"catalog": None})


def machine_of(name: str, catalog: Catalog, region: str | None, *, spot: bool) -> WorkerGroup:
    """A worker on an instance of a catalog, with its compute, NIC and price.

    Raises:
        RuleError: The catalog does not have it in the region, or its speed is unknown.
    """
    machine = _resolved(WorkerGroup(instance=name), catalog, region, spot=spot)
    assert isinstance(machine, WorkerGroup)
    return machine


def machines(cluster: Cluster, system: SystemSpec) -> Iterator[tuple[Place, WorkerGroup | ServerHost]]:
    """Groups of workers, and the machines of parameter servers alone, each with its place in the scenario."""
    for number, cloud in enumerate(cluster.clouds):
        for place, group in enumerate(cloud.workers):
            yield ("cluster", "clouds", number, "workers", place), group
    if isinstance(system.topology, ParameterServers):
        for number, host in enumerate(system.topology.hosts):
            if isinstance(host, ServerHost):
                yield ("system", "topology", "hosts", number), host


def _resolved_all(cluster: Cluster, system: SystemSpec, prices: Prices, folder: Path) -> tuple[Cluster, SystemSpec]:
    catalog = None
    if prices.catalog is not None:
        with below("prices", "catalog"):
            catalog = Catalog.read(prices.catalog, folder)
    found = {}
    regions = {cloud.name: cloud.region for cloud in cluster.clouds}
    for at, machine in machines(cluster, system):
        name = machine.cloud if isinstance(machine, ServerHost) else cluster.clouds[int(at[2])].name
        with below(*at):
            found[at] = _resolved(machine, catalog, regions.get(name), spot=prices.spot)
    clouds = []
    for number, cloud in enumerate(cluster.clouds):
        workers = [found["cluster", "clouds", number, "workers", place] for place, _ in enumerate(cloud.workers)]
        clouds.append(cloud.model_copy(update={"workers": workers}))
    topology = system.topology
    if isinstance(topology, ParameterServers):
        hosts = [found.get(("system", "topology", "hosts", place), host) for place, host in enumerate(topology.hosts)]
        system = system.model_copy(update={"topology": topology.model_copy(update={"hosts": hosts})})
    return cluster.model_copy(update={"clouds": clouds}), system


def _resolved(
    machine: WorkerGroup | ServerHost, catalog: Catalog | None, region: str | None, *, spot: bool
) -> WorkerGroup | ServerHost:
    """The machine with its instance's data in the fields that it leaves out; `spot` is the default."""
    spot = spot if machine.spot is None else machine.spot
    own = machine.model_copy(update={"spot": True}) if spot else machine
    if machine.instance is None:
        return own
    stated = {name for name in machine.model_fields_set if getattr(machine, name) is not None}
    computes = isinstance(machine, WorkerGroup)
    if catalog is None:
        if "price" not in stated or (computes and "compute" not in stated):
            problem = f"'{machine.instance}' has no compute or price, and there is no catalog"
            raise RuleError(problem, allowed="prices: {catalog: ...}; or compute and price beside it")
        return own
    with below("instance"):
        instance = catalog.instance(machine.instance, region, spot=spot)
    found: dict[str, Any] = {"price": instance.price, "watts": instance.watts, "carbon": instance.carbon}
    if instance.network_bps is not None:
        network = Schedule.constant(instance.network_bps)
        found["nic"] = Nic(up=network, down=network)
    if computes and "compute" not in stated:
        found["compute"] = Compute(cores=Schedule.constant(_cores(machine.instance, instance)))
    return own.model_copy(update={name: value for name, value in found.items() if name not in stated})


def _cores(name: str, instance: Instance) -> float:
    """The cores of an instance: of all its GPUs or, without any, its vCPUs."""
    if instance.gpu is None and instance.vcpus:
        return instance.vcpus
    device = GPUS.get(instance.gpu or "")
    if device is None:
        what = f"its GPU, {instance.gpu}, is no known device" if instance.gpu else "the catalog has no processor of it"
        raise RuleError(
            f"the speed of '{name}' is unknown: {what}", allowed=f"compute beside it; or GPUs: {listed(GPUS)}"
        )
    return instance.gpus * DEVICES[device].cores


def _check_egress(prices: Prices, clouds: list[str]) -> None:
    """Raise RuleError for the price of an unknown cloud, and where only some directions have one."""
    if not isinstance(prices.egress, Mapping):
        return
    for sender, price in prices.egress.items():
        for name in (sender, *(price if isinstance(price, Mapping) else ())):
            if name not in clouds:
                raise no_such("cloud", name, clouds, ("prices", "egress"))
    for a, b in permutations(clouds, 2):
        if prices.egress_price(a, b) is None:
            problem = f"a GB from '{a}' to '{b}' has no price"
            raise RuleError(problem, allowed=f"e.g. {{{a}: 0.02}}, or 0", at=("prices", "egress"))
