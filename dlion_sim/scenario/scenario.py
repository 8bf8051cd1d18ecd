"""The whole of a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from dlion_sim.own_code import is_reference
from dlion_sim.scenario.availability import Availability
from dlion_sim.scenario.cluster import Cluster
from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model, Name
from dlion_sim.scenario.network import Network, NoTcp, Packets, Windows
from dlion_sim.scenario.parametrised import named
from dlion_sim.scenario.partition import Owners
from dlion_sim.scenario.prices import Prices
from dlion_sim.scenario.renting import rented
from dlion_sim.scenario.system import SystemSpec
from dlion_sim.scenario.transport import AnyTransport, Reliable
from dlion_sim.scenario.units import PositiveDuration
from dlion_sim.scenario.workload import Workload

_MOST_WORKERS_RECORDED = 64
"""By default; all to all these send 4,000 messages an iteration of all."""


class Scenario(Model):
    """One experiment: what is learned, where, by which system, and until when."""

    name: Name
    """Name of the experiment, and of its run folders."""
    description: str = ""
    """What the experiment is about."""
    seed: Annotated[int, Field(ge=0)] = 0
    """All randomness follows from it: the same scenario and seed give the same run."""
    duration: PositiveDuration | None = None
    """Virtual time at which the run stops."""
    iterations: Annotated[int, Field(ge=1)] | None = None
    """Iterations after which each worker stops."""
    target_accuracy: Annotated[float, Field(gt=0, le=1)] | None = None
    """The run stops when the workers' mean accuracy reaches it."""
    target: float | None = None
    """The run stops when the workers' mean of the task's metric is as good, e.g. a perplexity of 12.5 or less."""
    record_transfers: bool | None = None
    """Whether the run folder has a row for every message in transfers.parquet: some 5 us and 20 bytes each. By
    default it has where there are at most 64 workers: more may send millions."""
    workload: Workload
    """What is learned, of which data, and how."""
    cluster: Cluster
    """The machines, and the network between them."""
    network: Network = Network()
    """How a simulation models the network."""
    transport: AnyTransport = Reliable()
    """What carries messages over it, in live and emulated runs too; a plain name is short for {kind: name}."""
    system: SystemSpec
    """How the workers train together."""
    availability: Availability | None = None
    """When machines and links are not there. None: all are, all the time; and whoever is lost ends the run."""
    prices: Prices | None = None
    """What machines and traffic cost, for the run's summary to tell. None: only what machines say themselves."""
    modules: str | None = None
    """The folder of Python modules that names of your own, package.module:name, are looked for in, relative to the
    scenario file's folder. By default it is that folder."""

    @property
    def records_transfers(self) -> bool:
        """Whether the run folder has a row for every message."""
        if self.record_transfers is not None:
            return self.record_transfers
        return len(self.cluster.workers) <= _MOST_WORKERS_RECORDED

    @property
    def references(self) -> dict[str, str]:
        """What of the user's own code it names, by path."""
        system, workload = self.system, self.workload
        choices = ("batching", "exchange", "synchronization", "knowledge_transfer")
        kinds = {f"system.{each}": choice.kind for each in choices if (choice := getattr(system, each))}
        learned = {f"workload.{each}": named(getattr(workload, each))[0] for each in ("dataset", "model")}
        names = {**learned, "system.name": system.name, **kinds}
        return {path: name for path, name in names.items() if name and is_reference(name)}

    @field_validator("modules")
    @classmethod
    def _found_from_anywhere(cls, modules: str | None, info: ValidationInfo) -> str | None:
        folder = (info.context or {}).get("folder", Path())
        return None if modules is None else str(Path(folder, modules).absolute())

    @model_validator(mode="after")
    def _models_its_losses(self) -> Self:
        feels = isinstance(self.network.model, Packets) or isinstance(self.network.tcp, Windows)
        if not feels and (at := self.cluster.first_loss):
            raise RuleError(
                "packets are lost, which only windows and packets feel",
                allowed="with network: {tcp: window} or {model: packets}",
                at=("cluster", *at),
            )
        return self

    @model_validator(mode="after")
    def _models_its_fabrics(self) -> Self:
        if not isinstance(self.network.tcp, NoTcp) and (at := self.cluster.first_fabric):
            raise RuleError(
                f"{self.network.tcp.kind} knows no fabrics", allowed="with network: {tcp: none}", at=("cluster", *at)
            )
        return self

    @model_validator(mode="after")
    def _has_what_is_down(self) -> Self:
        if self.availability:
            try:
                self.availability.check(self.cluster, self.duration)
            except RuleError as fault:
                raise RuleError(fault.problem, allowed=fault.allowed, at=("availability", *fault.at)) from None
        return self

    @model_validator(mode="after")
    def _has_where_data_lie(self) -> Self:
        if isinstance(partition := self.workload.partition, Owners):
            try:
                partition.workers_at(self.cluster)
            except RuleError as fault:
                at = ("workload", "partition", *fault.at)
                raise RuleError(fault.problem, allowed=fault.allowed, at=at) from None
        return self

    @model_validator(mode="after")
    def _rents(self, info: ValidationInfo) -> Self:
        return rented(self, Path((info.context or {}).get("folder", "")))

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.target is not None and self.target_accuracy is not None:
            raise RuleError("target and target_accuracy are two of one kind", allowed="one of them")
        if self.duration is None and self.iterations is None:
            for key in ("target_accuracy", "target"):
                if getattr(self, key) is not None:
                    raise RuleError(f"{key} may never be reached: also give duration or iterations")
            raise RuleError("nothing says when the run ends: give duration or iterations")
        return self
