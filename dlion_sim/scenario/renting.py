"""From the instances that a scenario names to machines with prices, and all of its prices in one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dlion_sim.errors import did_you_mean
from dlion_sim.scenario.catalog import Catalog, Instance
from dlion_sim.scenario.devices import DEVICES, GPUS
from dlion_sim.scenario.faults import RuleError, listed
from dlion_sim.scenario.machines import Compute, Nic, Rented, WorkerGroup
from dlion_sim.scenario.prices import Prices
from dlion_sim.scenario.schedule import Schedule
from dlion_sim.scenario.topology import ParameterServers, ServerHost

if TYPE_CHECKING:
    from dlion_sim.scenario.scenario import Scenario

Resolved = TypeVar("Resolved", bound="Scenario")
_Place = tuple[str | int, ...]


def rented(scenario: Resolved, folder: Path) -> Resolved:
    """The scenario with all that the catalog tells of its instances, which needs the catalog no more.

    Raises:
        RuleError: The catalog cannot be read or does not have an instance, or some prices are stated and others not.
    """
    prices = scenario.prices or Prices()
    if prices.spot or any(machine.instance is not None for _, machine in _machines(scenario)):
        scenario = _with_instances(scenario, prices, folder)
    if scenario.prices is not None or any(machine.price is not None for _, machine in _machines(scenario)):
        for at, machine in _machines(scenario):
            if machine.price is None:
                raise RuleError(
                    "nothing says what an hour of it costs", allowed="price: 3.06, say, or 0; or an instance", at=at
                )
    _check_egress(prices, [cloud.name for cloud in scenario.cluster.clouds])
    if prices.catalog is None:
        return scenario
    return scenario.model_copy(update={"prices": prices.model_copy(update={"catalog": None})})


def tariff(scenario: Scenario) -> dict[str, Any] | None:
    """All prices of a run: `per_hour`, `watts` and `carbon` by machine, `egress` by sending and receiving cloud.

    None where no machine has a price; `watts` and `carbon` (g of CO2 a kWh) are None where not every machine states
    them, and `egress` is where traffic has no price. `step` and `least` are how time is billed (s). `spot`, which
    machines are paid only while they are there, is told where some are, and with it `restart` (s), for how long before
    its process runs again such a machine is there.
    """
    machines: list[Rented] = []
    for _, machine in _machines(scenario):
        machines += [machine] * (machine.count if isinstance(machine, WorkerGroup) else 1)
    if any(machine.price is None for machine in machines):
        return None
    prices = scenario.prices or Prices()
    egress: dict[str, dict[str, float | None]] = {}
    for a, b in permutations([cloud.name for cloud in scenario.cluster.clouds], 2):
        egress.setdefault(a, {})[b] = prices.egress_price(a, b)
    return {
        "per_hour": [machine.price for machine in machines],
        "step": prices.billing.step,
        "least": prices.billing.least,
        "egress": None if prices.egress is None else egress,
        "watts": _all([machine.watts for machine in machines]),
        "carbon": _all([machine.carbon for machine in machines]),
        **(
            {"spot": [bool(machine.spot) for machine in machines], **_restarting(scenario)}
            if any(each.spot for each in machines)
            else {}
        ),
    }


def _restarting(scenario: Scenario) -> dict[str, float]:
    return {"restart": scenario.availability.restart} if scenario.availability else {}


def machine_of(name: str, catalog: Catalog, region: str | None, *, spot: bool) -> WorkerGroup:
    """A worker on an instance of a catalog, with all that this tells of it.

    Raises:
        RuleError: The catalog does not have it there, or nothing says how fast it computes.
    """
    machine = _resolved(WorkerGroup(instance=name), catalog, region, spot=spot)
    assert isinstance(machine, WorkerGroup)
    return machine


def _machines(scenario: Scenario) -> Iterator[tuple[_Place, WorkerGroup | ServerHost]]:
    """Groups of workers, and parameter servers' own machines, by where they stand."""
    for number, cloud in enumerate(scenario.cluster.clouds):
        for place, group in enumerate(cloud.workers):
            yield ("cluster", "clouds", number, "workers", place), group
    for number, host in enumerate(_hosts(scenario)):
        if isinstance(host, ServerHost):
            yield ("system", "topology", "hosts", number), host


def _hosts(scenario: Scenario) -> list[int | ServerHost]:
    topology = scenario.system.topology
    return topology.hosts if isinstance(topology, ParameterServers) else []


def _with_instances(scenario: Resolved, prices: Prices, folder: Path) -> Resolved:
    """The scenario, with what its instances are in the place of their names alone."""
    catalog = None
    if prices.catalog is not None:
        with _at("prices", "catalog"):
            catalog = Catalog.read(prices.catalog, folder)
    found = {}
    regions = {cloud.name: cloud.region for cloud in scenario.cluster.clouds}
    for at, machine in _machines(scenario):
        name = machine.cloud if isinstance(machine, ServerHost) else scenario.cluster.clouds[int(at[2])].name
        with _at(*at):
            found[at] = _resolved(machine, catalog, regions.get(name), spot=prices.spot)
    clouds = [
        cloud.model_copy(
            update={
                "workers": [
                    found["cluster", "clouds", number, "workers", place] for place, _ in enumerate(cloud.workers)
                ]
            }
        )
        for number, cloud in enumerate(scenario.cluster.clouds)
    ]
    cluster = scenario.cluster.model_copy(update={"clouds": clouds})
    system, topology = scenario.system, scenario.system.topology
    if topology is not None and _hosts(scenario):
        hosts = [found.get(("system", "topology", "hosts", place), host) for place, host in enumerate(_hosts(scenario))]
        system = system.model_copy(update={"topology": topology.model_copy(update={"hosts": hosts})})
    return scenario.model_copy(update={"cluster": cluster, "system": system})


def _resolved(
    machine: WorkerGroup | ServerHost, catalog: Catalog | None, region: str | None, *, spot: bool
) -> WorkerGroup | ServerHost:
    """The machine with what its instance is, where it says nothing else; `spot` is of all that do not say."""
    spot = spot if machine.spot is None else machine.spot
    own = machine.model_copy(update={"spot": True}) if spot else machine
    if machine.instance is None:
        return own
    said = {name for name in machine.model_fields_set if getattr(machine, name) is not None}
    computes = isinstance(machine, WorkerGroup)
    if catalog is None:
        if "price" not in said or (computes and "compute" not in said):
            problem = f"nothing says what a '{machine.instance}' is and costs"
            raise RuleError(problem, allowed="prices: {catalog: ...}; or compute and price beside it")
        return own
    with _at("instance"):
        instance = catalog.instance(machine.instance, region, spot=spot)
    told: dict[str, Any] = {"price": instance.price, "watts": instance.watts, "carbon": instance.carbon}
    if instance.network_bps is not None:
        network = Schedule.constant(instance.network_bps)
        told["nic"] = Nic(up=network, down=network)
    if computes and "compute" not in said:
        told["compute"] = Compute(cores=Schedule.constant(_cores(machine.instance, instance)))
    return own.model_copy(update={name: value for name, value in told.items() if name not in said})


def _cores(name: str, instance: Instance) -> float:
    """What an instance computes like: all of its GPUs or, without any, its processors."""
    if instance.gpu is None and instance.vcpus:
        return instance.vcpus
    device = GPUS.get(instance.gpu or "")
    if device is None:
        what = f"its GPU, {instance.gpu}, is no device that is known" if instance.gpu else "it tells of no processor"
        raise RuleError(
            f"nothing says how fast a '{name}' computes: {what}", allowed=f"compute beside it; or GPUs: {listed(GPUS)}"
        )
    return instance.gpus * DEVICES[device].cores


def _check_egress(prices: Prices, clouds: list[str]) -> None:
    """Raise RuleError for a price of a cloud that is not there, and where one of several is missing."""
    if not isinstance(prices.egress, Mapping):
        return
    for sender, price in prices.egress.items():
        for name in (sender, *(price if isinstance(price, Mapping) else ())):
            if name not in clouds:
                problem = f"there is no cloud '{name}'{did_you_mean(name, clouds)}"
                raise RuleError(problem, allowed=listed(clouds), at=("prices", "egress"))
    for a, b in permutations(clouds, 2):
        if prices.egress_price(a, b) is None:
            problem = f"nothing says what a GB from '{a}' to '{b}' costs"
            raise RuleError(problem, allowed=f"{{{a}: 0.02}}, or 0 if nothing", at=("prices", "egress"))


@contextmanager
def _at(*place: str | int) -> Iterator[None]:
    """Within the block, broken rules lie below that place."""
    try:
        yield
    except RuleError as error:
        raise RuleError(error.problem, allowed=error.allowed, at=(*place, *error.at)) from None


def _all(values: list[float | None]) -> list[float] | None:
    """The values, if there is none missing."""
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None
