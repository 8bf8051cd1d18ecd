"""The whole of a scenario."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from dlion_sim.own_code import is_reference
from dlion_sim.scenario.availability import Availability
from dlion_sim.scenario.cluster import Cluster
from dlion_sim.scenario.faults import RuleError, below
from dlion_sim.scenario.machines import WorkerGroup
from dlion_sim.scenario.model import Model, Name
from dlion_sim.scenario.network import Network, NoTcp, Packets, Windows
from dlion_sim.scenario.parametrised import named
from dlion_sim.scenario.partition import Owners
from dlion_sim.scenario.prices import Prices, machines, with_instances
from dlion_sim.scenario.system import SystemSpec
from dlion_sim.scenario.transport import AnyTransport, Reliable
from dlion_sim.scenario.units import PositiveDuration
from dlion_sim.scenario.workload import Workload

_MOST_WORKERS_RECORDED = 64
"""By default; with all-to-all exchange they send 4,000 messages per iteration."""


class Scenario(Model):
    """One experiment: workload, cluster, system and duration."""

    name: Name
    """Name of the experiment and its run folders."""
    description: str = ""
    """Description of the experiment."""
    seed: Annotated[int, Field(ge=0, le=10**15)] = 0
    """Seed of all random numbers: the same scenario and seed give the same run."""
    duration: PositiveDuration | None = None
    """Virtual time at which the run stops."""
    iterations: Annotated[int, Field(ge=1)] | None = None
    """Iterations after which each worker stops."""
    target_accuracy: Annotated[float, Field(gt=0, le=1)] | None = None
    """The run stops when the workers' mean accuracy reaches this value."""
    target: float | None = None
    """The same for any metric of the task, e.g. a perplexity of 12.5 or less."""
    record_transfers: bool | None = None
    """Whether transfers.parquet has every message, at about 5 us and 20 bytes each; by default with up to 64
    workers."""
    workload: Workload
    """Data, model and training."""
    cluster: Cluster
    """Machines and the network between them."""
    network: Network = Network()
    """Network model of simulations."""
    transport: AnyTransport = Reliable()
    """Transport of messages, in live and emulated runs too."""
    system: SystemSpec
    """The training system."""
    availability: Availability | None = None
    """Outages of participants and links, and how participants go on. Without it, nothing fails in a simulation."""
    prices: Prices | None = None
    """Prices of machines and traffic, for the cost in the summary."""
    modules: str | None = None
    """Folder of your own Python modules; by default the scenario's."""

    @property
    def records_transfers(self) -> bool:
        """Whether every message is recorded."""
        if self.record_transfers is not None:
            return self.record_transfers
        return len(self.cluster.workers) <= _MOST_WORKERS_RECORDED

    @property
    def references(self) -> dict[str, str]:
        """Names of the user's own code, by path."""
        system, workload = self.system, self.workload
        choices = ("batching", "exchange", "synchronization", "knowledge_transfer")
        kinds = {f"system.{each}": choice.kind for each in choices if (choice := getattr(system, each))}
        learned = {f"workload.{each}": named(getattr(workload, each))[0] for each in ("dataset", "model")}
        names = {**learned, "system.name": system.name, **kinds}
        return {path: name for path, name in names.items() if name and is_reference(name)}

    @field_validator("modules")
    @classmethod
    def _absolute(cls, modules: str | None, info: ValidationInfo) -> str | None:
        folder = (info.context or {}).get("folder", Path())
        return None if modules is None else str(Path(folder, modules).absolute())

    @model_validator(mode="after")
    def _check_losses(self) -> Self:
        feels = isinstance(self.network.model, Packets) or isinstance(self.network.tcp, Windows)
        if not feels and (at := self.cluster.first_loss):
            raise RuleError(
                "this network model ignores packet loss",
                allowed="with network: {tcp: window} or {model: packets}",
                at=("cluster", *at),
            )
        return self

    @model_validator(mode="after")
    def _check_fabrics(self) -> Self:
        if not isinstance(self.network.tcp, NoTcp) and (at := self.cluster.first_fabric):
            raise RuleError(
                f"{self.network.tcp.kind} does not support fabrics",
                allowed="with network: {tcp: none}",
                at=("cluster", *at),
            )
        return self

    @model_validator(mode="after")
    def _check_availability(self) -> Self:
        if self.availability:
            with below("availability"):
                self.availability.check(self.cluster, self.duration)
        return self

    @model_validator(mode="after")
    def _check_partition(self) -> Self:
        if isinstance(partition := self.workload.partition, Owners):
            with below("workload", "partition"):
                partition.workers_at(self.cluster)
        return self

    @model_validator(mode="after")
    def _resolve_instances(self, info: ValidationInfo) -> Self:
        before = self.cluster, self.system, self.prices
        after = with_instances(*before, Path((info.context or {}).get("folder", "")))
        if all(one is other for one, other in zip(before, after, strict=True)):
            return self
        return self.model_copy(update=dict(zip(("cluster", "system", "prices"), after, strict=True)))

    @model_validator(mode="after")
    def _check_end(self) -> Self:
        if self.target is not None and self.target_accuracy is not None:
            raise RuleError("target and target_accuracy exclude each other", allowed="one of them")
        if self.duration is None and self.iterations is None:
            for key in ("target_accuracy", "target"):
                if getattr(self, key) is not None:
                    raise RuleError(f"{key} may never be reached: also give duration or iterations")
            raise RuleError("the run has no end: give duration or iterations")
        return self


def tariff(scenario: Scenario) -> dict[str, Any] | None:
    """All prices of a run: `per_hour`, `watts` and `carbon` by machine, `egress` by sending and receiving cloud.

    None where no machine has a price. `watts` and `carbon` (g of CO2 per kWh) are None unless every machine states
    them, `egress` where traffic has no price. `step` and `least` are how time is billed (s). With spot machines, `spot`
    has whether each machine is one, and `restart` the time (s) between such a machine's start and its process's.
    """
    each = []
    for _, machine in machines(scenario.cluster, scenario.system):
        each += [machine] * (machine.count if isinstance(machine, WorkerGroup) else 1)
    if any(machine.price is None for machine in each):
        return None
    prices = scenario.prices or Prices()
    egress: dict[str, dict[str, float | None]] = {}
    for a, b in permutations([cloud.name for cloud in scenario.cluster.clouds], 2):
        egress.setdefault(a, {})[b] = prices.egress_price(a, b)
    watts, carbon = [machine.watts for machine in each], [machine.carbon for machine in each]
    found: dict[str, Any] = {
        "per_hour": [machine.price for machine in each],
        "step": prices.billing.step,
        "least": prices.billing.least,
        "egress": None if prices.egress is None else egress,
        "watts": None if None in watts else watts,
        "carbon": None if None in carbon else carbon,
    }
    if any(machine.spot for machine in each):
        found["spot"] = [bool(machine.spot) for machine in each]
        if scenario.availability:
            found["restart"] = scenario.availability.restart
    return found
