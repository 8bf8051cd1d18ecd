"""Where the workers are: micro-clouds, their local networks, and the WAN between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Self

from pydantic import Field, ValidationInfo, model_validator

from dlion_sim.scenario.capacity import UNLIMITED, BandwidthSchedule
from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.machines import Compute, Nic, WorkerGroup
from dlion_sim.scenario.model import Model, Name
from dlion_sim.scenario.paths import Paths
from dlion_sim.scenario.schedule import Schedule
from dlion_sim.scenario.units import Duration
from dlion_sim.scenario.wan import Wan


class Fabric(Model):
    """Switches in two tiers: each machine is at a leaf, and each leaf has a link to every spine.

    The cloud's workers are spread over the leaves evenly and in order, parameter servers on machines of their own after
    them. What goes to or comes from other clouds crosses no spine.
    """

    leaves: Annotated[int, Field(ge=1, le=1000)]
    """How many leaves there are, at most as many as workers."""
    spines: Annotated[int, Field(ge=1, le=256)]
    """How many spines there are: so many ways lead from leaf to leaf."""
    oversubscription: Annotated[float, Field(ge=0.01, le=1000)] | None = None
    """How much more a leaf's machines may send together than its links to the spines carry, by the NICs' bandwidths at
    the run's start; likewise what they receive. By default 1: no more."""
    bandwidth: BandwidthSchedule | None = None
    """Bandwidth of each link between a leaf and a spine, in each direction, in place of an oversubscription."""

    @model_validator(mode="after")
    def _has_one_bandwidth(self) -> Self:
        if self.bandwidth and self.oversubscription is not None:
            raise RuleError("oversubscription and bandwidth both say how much links carry", allowed="one of them")
        return self


class Lan(Model):
    """The network inside a micro-cloud: one switch, or leaves and spines."""

    bandwidth: BandwidthSchedule | None = None
    """Bandwidth of the switch, shared by all that crosses it. By default it is non-blocking: only NICs limit it."""
    rtt: Duration = 0.0002
    """Round-trip time between any two of the cloud's workers."""
    fabric: Fabric | None = None
    """Leaves and spines in the place of one switch."""

    @model_validator(mode="after")
    def _has_one_switch(self) -> Self:
        if self.fabric and self.bandwidth:
            raise RuleError(
                "is of one switch, and a fabric has many", allowed="fabric: {bandwidth: ...}", at=("bandwidth",)
            )
        return self


class Cloud(Model):
    """A micro-cloud: machines in one place."""

    name: Name
    """What it is called; no other cloud is called that."""
    region: str | None = None
    """What `prices.catalog` calls the place; needed where it has an instance in several."""
    workers: Annotated[list[WorkerGroup], Field(min_length=1)]
    """Its workers, in groups that are alike."""
    lan: Lan = Lan()
    """The network between its workers."""

    @model_validator(mode="after")
    def _has_workers_at_each_leaf(self) -> Self:
        workers = sum(group.count for group in self.workers)
        if self.lan.fabric and self.lan.fabric.leaves > workers:
            raise RuleError(
                f"{workers} workers leave some of {self.lan.fabric.leaves} leaves without any",
                allowed=f"1 to {workers}",
                at=("lan", "fabric", "leaves"),
            )
        return self


@dataclass(frozen=True)
class WorkerPlace:
    """One worker: where it is and what it runs on."""

    index: int
    """Among all workers of the cluster, from 0."""
    cloud: str
    name: str
    """Cloud and number within it, e.g. "east/0"."""
    compute: Compute
    nic: Nic


class Cluster(Model):
    """All micro-clouds and the network between them."""

    clouds: Annotated[list[Cloud], Field(min_length=1)]
    """The micro-clouds, in the order that numbers their workers."""
    wan: Wan | None = None
    """The network between the clouds, needed as soon as there are two."""

    @model_validator(mode="after")
    def _joins_its_clouds(self, info: ValidationInfo) -> Self:
        names = [cloud.name for cloud in self.clouds]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise RuleError(f"a cloud named '{name}' stands already above", at=("clouds", number, "name"))
        if (info.context or {}).get("of_run") and self.wan and not self.paths.is_complete("bandwidth"):
            # Once, paths had no limit that stated none.
            return self.model_copy(update={"wan": self.wan.model_copy(update={"bandwidth": UNLIMITED})})
        try:
            self.paths.check()
        except RuleError as fault:
            raise RuleError(fault.problem, allowed=fault.allowed, at=("wan", *fault.at)) from None
        return self

    @cached_property
    def paths(self) -> Paths:
        """What holds of the paths between the clouds."""
        return Paths([cloud.name for cloud in self.clouds], self.wan or Wan())

    @cached_property
    def workers(self) -> tuple[WorkerPlace, ...]:
        """All workers in the order of the file, each group expanded by its count."""
        return tuple(self._places())

    def wan_path(self, a: str, b: str) -> tuple[Schedule | None, float]:
        """The path from cloud `a` to another cloud `b`: (bandwidth, None if only NICs bound it; RTT in seconds)."""
        bandwidth, rtt = self.paths.stated("bandwidth", a, b), self.paths.stated("rtt", a, b)
        assert bandwidth is not None
        assert rtt is not None
        return (None if bandwidth[1] == UNLIMITED else bandwidth[1]), rtt[1]

    def wan_loss(self, a: str, b: str) -> float:
        """Part of the packets that are lost on the path from cloud `a` to another cloud `b`."""
        stated = self.paths.stated("loss", a, b)
        return stated[1] if stated else 0.0

    @property
    def first_fabric(self) -> tuple[str | int, ...] | None:
        """Where a fabric is stated first, if anywhere: keys from the cluster on."""
        stated = (number for number, cloud in enumerate(self.clouds) if cloud.lan.fabric)
        return next((("clouds", number, "lan", "fabric") for number in stated), None)

    @property
    def first_loss(self) -> tuple[str | int, ...] | None:
        """Where a loss is stated first, if anywhere: keys from the cluster on."""
        wan = self.wan or Wan()
        if wan.loss:
            return "wan", "loss"
        lossy = (("wan", "paths", number, "loss") for number, path in enumerate(wan.paths) if path.loss)
        return next(lossy, None)

    def _places(self) -> Iterator[WorkerPlace]:
        index = 0
        for cloud in self.clouds:
            groups = [group for group in cloud.workers for _ in range(group.count)]
            for number, group in enumerate(groups):
                yield WorkerPlace(index, cloud.name, f"{cloud.name}/{number}", group.compute, group.nic)
                index += 1
