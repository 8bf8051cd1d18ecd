"""Where the workers are: micro-clouds, their local networks, and the WAN between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Annotated, Self

from pydantic import Field, model_validator

from dlion_sim.errors import did_you_mean
from dlion_sim.scenario.capacity import BandwidthSchedule
from dlion_sim.scenario.faults import RuleError, listed
from dlion_sim.scenario.machines import Compute, Nic, WorkerGroup
from dlion_sim.scenario.matrix import BandwidthMatrix
from dlion_sim.scenario.model import Model, Name
from dlion_sim.scenario.schedule import Schedule
from dlion_sim.scenario.units import Duration

Loss = Annotated[float, Field(ge=0, lt=1)]
"""Part of packets that are lost."""


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


class WanPath(Model):
    """The path between two micro-clouds; what it omits is the WAN's."""

    between: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    """Two clouds; the path is the same in both directions, each with its own bandwidth."""
    source: str | None = Field(default=None, alias="from")
    """The cloud that sends, where the path is of one direction."""
    target: str | None = Field(default=None, alias="to")
    """The cloud that receives, where the path is of one direction."""
    bandwidth: BandwidthSchedule | None = None
    """Bandwidth in each direction; by default the WAN's."""
    rtt: Duration | None = None
    """Round-trip time; by default the WAN's, which then has to state one."""
    loss: Loss | None = None
    """Part of the packets that are lost; by default the WAN's."""

    @model_validator(mode="after")
    def _has_two_ends(self) -> Self:
        one_way = [self.source, self.target]
        if (self.between is None) == (one_way == [None, None]) or (self.between is None and None in one_way):
            raise RuleError(
                "a path names its clouds either as 'between: [a, b]' (both directions) or as 'from: a, to: b'"
            )
        return self

    @property
    def directions(self) -> list[tuple[str, str]]:
        """(sending cloud, receiving cloud) of each direction."""
        if self.between is not None:
            a, b = self.between
            return [(a, b), (b, a)]
        return [(self.source or "", self.target or "")]


class Wan(Model):
    """The network between micro-clouds. A bandwidth or an RTT here gives every two clouds a path."""

    bandwidth: BandwidthSchedule | None = None
    """Bandwidth of each path in each direction, shared by all that crosses it. By default only NICs limit it."""
    rtt: Duration | None = None
    """Round-trip time of each path, 0 ms where there is no latency. By default every path states its own."""
    loss: Loss | None = None
    """Part of the packets that are lost on each path, by default none. It bounds a connection's window by 1448 bytes
    times sqrt(3/2 / loss) (Mathis et al., 1997), in simulations with `network: {tcp: window}`; with `network: {model:
    packets}` they are lost one by one."""
    matrix: BandwidthMatrix | None = None
    """Bandwidths that differ from that one, by sending and then by receiving cloud: {east: {west: 40 Mbps}}; or a CSV
    file or a folder of iperf3's results that has them, and is read when the scenario is."""
    paths: list[WanPath] = Field(default_factory=list)
    """Paths that differ from all that; or every path, where nothing else is stated."""

    @property
    def joins_all(self) -> bool:
        """Whether every two clouds have a path, listed or not."""
        return self.bandwidth is not None or self.rtt is not None

    @cached_property
    def measured(self) -> Mapping[tuple[str, str], Schedule]:
        """The matrix' bandwidth of each (sending cloud, receiving cloud)."""
        return {(a, b): bandwidth for a, row in (self.matrix or {}).items() for b, bandwidth in row.items()}

    @cached_property
    def by_direction(self) -> Mapping[tuple[str, str], WanPath]:
        """The listed path of each (sending cloud, receiving cloud)."""
        return {direction: path for path in self.paths for direction in path.directions}


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
    def _joins_its_clouds(self) -> Self:
        names = [cloud.name for cloud in self.clouds]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise RuleError(f"a cloud named '{name}' stands already above", at=("clouds", number, "name"))
        wan = self.wan or Wan()
        seen: set[tuple[str, str]] = set()
        for number, path in enumerate(wan.paths):
            _check_path(path, names, seen, at=("wan", "paths", number))
            seen.update(path.directions)
        for a, b in wan.measured:
            _check_path(WanPath(source=a, target=b), names, set(), at=("wan", "matrix", a))
            seen.add((a, b))
        for a, b in () if wan.joins_all else permutations(names, 2):
            if (a, b) not in seen:
                raise RuleError(
                    f"the clouds are disconnected: no path leads from '{a}' to '{b}'; give wan.rtt for a path between "
                    f"all clouds, or list it in wan.paths, e.g. {{between: [{a}, {b}], rtt: 60 ms}}"
                )
        for a, b in () if wan.rtt is not None else permutations(names, 2):
            listed = wan.by_direction.get((a, b))
            if listed is None or listed.rtt is None:
                raise RuleError(
                    f"nothing says how long the path from '{a}' to '{b}' takes",
                    allowed="rtt: 60 ms, for all paths or for this one; 0 ms without latency",
                    at=("wan",) if listed is None else ("wan", "paths", wan.paths.index(listed)),
                )
        return self

    @cached_property
    def workers(self) -> tuple[WorkerPlace, ...]:
        """All workers in the order of the file, each group expanded by its count."""
        return tuple(self._places())

    def wan_path(self, a: str, b: str) -> tuple[Schedule | None, float]:
        """The path from cloud `a` to another cloud `b`: (bandwidth, None if only NICs bound it; RTT in seconds)."""
        wan = self.wan or Wan()
        path = wan.by_direction.get((a, b)) or wan
        rtt = path.rtt if path.rtt is not None else wan.rtt
        assert rtt is not None
        listed = None if path is wan else path.bandwidth
        return listed or wan.measured.get((a, b)) or wan.bandwidth, rtt

    def wan_loss(self, a: str, b: str) -> float:
        """Part of the packets that are lost on the path from cloud `a` to another cloud `b`."""
        wan = self.wan or Wan()
        path = wan.by_direction.get((a, b)) or wan
        return (wan.loss if path.loss is None else path.loss) or 0.0

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


def _check_path(path: WanPath, clouds: list[str], seen: set[tuple[str, str]], at: tuple[str | int, ...]) -> None:
    for name in path.directions[0]:
        if name not in clouds:
            raise RuleError(f"there is no cloud '{name}'{did_you_mean(name, clouds)}", allowed=listed(clouds), at=at)
    for a, b in path.directions:
        if a == b:
            raise RuleError(f"the path leads from '{a}' to itself; inside a cloud the network is its lan", at=at)
        if (a, b) in seen:
            raise RuleError(f"a path from '{a}' to '{b}' stands already above", at=at)
