"""The cluster: micro-clouds, their local networks, and the WAN between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Self

from pydantic import Field, ValidationInfo, model_validator

from dlion_sim.scenario.capacity import UNLIMITED, BandwidthSchedule
from dlion_sim.scenario.faults import RuleError, below
from dlion_sim.scenario.machines import Compute, Nic, WorkerGroup
from dlion_sim.scenario.model import Model, Name
from dlion_sim.scenario.schedule import Schedule
from dlion_sim.scenario.units import Duration
from dlion_sim.scenario.wan import Paths, Wan


class Fabric(Model):
    """Switches in two tiers: each machine is at a leaf, and each leaf has a link to every spine.

    Workers are spread evenly over the leaves, in order, then parameter servers on machines of their own. Traffic to and
    from other clouds crosses no spine.
    """

    leaves: Annotated[int, Field(ge=1, le=1000)]
    """Number of leaves, at most that of workers."""
    spines: Annotated[int, Field(ge=1, le=256)]
    """Number of spines."""
    oversubscription: Annotated[float, Field(ge=0.01, le=1000)] | None = None
    """Ratio of the bandwidth of a leaf's NICs, at the run's start, to that of its links to the spines. By default 1."""
    bandwidth: BandwidthSchedule | None = None
    """Bandwidth of each link between a leaf and a spine, instead of an oversubscription."""

    @model_validator(mode="after")
    def _has_one_bandwidth(self) -> Self:
        if self.bandwidth and self.oversubscription is not None:
            raise RuleError("oversubscription and bandwidth both set the links' bandwidth", allowed="one of them")
        return self


class Lan(Model):
    """The network inside a micro-cloud: one switch, or leaves and spines."""

    bandwidth: BandwidthSchedule | None = None
    """Bandwidth of the switch, shared by all its traffic. By default only NICs limit."""
    rtt: Duration = 0.0002
    """Round-trip time between two machines of the cloud."""
    fabric: Fabric | None = None
    """Leaves and spines instead of one switch."""

    @model_validator(mode="after")
    def _has_one_switch(self) -> Self:
        if self.fabric and self.bandwidth:
            raise RuleError("does not apply to a fabric", allowed="fabric: {bandwidth: ...}", at=("bandwidth",))
        return self


class Cloud(Model):
    """A micro-cloud: machines in one place."""

    name: Name
    """Name, unique among the clouds."""
    region: str | None = None
    """Region in `prices.catalog`; required for instances in several regions."""
    workers: Annotated[list[WorkerGroup], Field(min_length=1)]
    """Its workers, in groups of equal ones."""
    lan: Lan = Lan()
    """The network inside it."""

    @model_validator(mode="after")
    def _has_workers_at_each_leaf(self) -> Self:
        workers = sum(group.count for group in self.workers)
        if self.lan.fabric and self.lan.fabric.leaves > workers:
            raise RuleError(
                f"{self.lan.fabric.leaves} leaves are more than the {workers} workers",
                allowed=f"1 to {workers}",
                at=("lan", "fabric", "leaves"),
            )
        return self


@dataclass(frozen=True)
class WorkerPlace:
    """One worker: its place and its machine."""

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
    """The network between the clouds; required with two or more."""

    @model_validator(mode="after")
    def _joins_its_clouds(self, info: ValidationInfo) -> Self:
        names = [cloud.name for cloud in self.clouds]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise RuleError(f"a cloud named '{name}' exists already", at=("clouds", number, "name"))
        if (info.context or {}).get("of_run") and self.wan and not self.paths.is_complete("bandwidth"):
            # In former versions, paths without a bandwidth had no limit.
            return self.model_copy(update={"wan": self.wan.model_copy(update={"bandwidth": UNLIMITED})})
        with below("wan"):
            self.paths.check()
        return self

    @cached_property
    def paths(self) -> Paths:
        """Bandwidth, RTT and loss of the paths between the clouds."""
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
        """Share of packets lost on the path from cloud `a` to another cloud `b`."""
        stated = self.paths.stated("loss", a, b)
        return stated[1] if stated else 0.0

    @property
    def first_fabric(self) -> tuple[str | int, ...] | None:
        """Keys of the first fabric, from the cluster on; None without any."""
        stated = (number for number, cloud in enumerate(self.clouds) if cloud.lan.fabric)
        return next((("clouds", number, "lan", "fabric") for number in stated), None)

    @property
    def first_loss(self) -> tuple[str | int, ...] | None:
        """Keys of the first loss, from the cluster on; None without any."""
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
