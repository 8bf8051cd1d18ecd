"""Routes: the numbered links that a message between two participants crosses, and its latency."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple
from zlib import crc32

from dlion_sim.scenario import Cluster, Fabric, Schedule, WorkerPlace
from dlion_sim.scenario.machines import Nic
from dlion_sim.scenario.system import ServerHost, machines_of

BITS_PER_BYTE = 8


class Route(NamedTuple):
    """The links that a message crosses, its one-way latency in seconds, and its loss rate of packets."""

    links: tuple[int, ...]
    latency: float
    loss: float = 0.0


class LeafSpine(NamedTuple):
    """The leaf-spine fabric of a cloud."""

    leaf: dict[int, int]
    """The leaf of each machine."""
    to_spine: list[tuple[int, ...]]
    """The links of each leaf, one to each spine."""
    from_spine: list[tuple[int, ...]]
    """Likewise, one from each spine."""


class Routing:
    """Links with their `names` and `capacities_bps` over time, and the routes between any two participants.

    Participants are the workers, then the parameter servers on the machines in `servers`: a worker's, or their own.

    A message crosses its sender's NIC, then the LAN of their cloud or the WAN path between their clouds, then its
    receiver's NIC. A WAN path is shared by all messages of that direction; a LAN or path without a bandwidth is
    unlimited. In a cloud with a fabric, messages between leaves cross the link to a spine and the one from there;
    messages within a leaf or to other clouds cross none of them.

    `interrupted` returns the capacity of the path between two clouds if it has outages, else None.
    """

    def __init__(
        self,
        cluster: Cluster,
        servers: Sequence[int | ServerHost] = (),
        interrupted: Callable[[str, str], Schedule | None] = lambda *_: None,
    ) -> None:
        self.capacities_bps: list[Schedule] = []
        self.names: list[str] = []
        workers = len(cluster.workers)
        own = {workers + number: each for number, each in enumerate(servers) if isinstance(each, ServerHost)}
        machines: list[WorkerPlace | ServerHost] = [*cluster.workers, *own.values()]
        names = [*(worker.name for worker in cluster.workers), *(f"server {number}" for number in own)]
        self._machine = machines_of(workers, servers)
        self._cloud = [machine.cloud for machine in machines]
        self._up = [self._add(f"{name} up", each.nic.up) for name, each in zip(names, machines, strict=True)]
        self._down = [self._add(f"{name} down", each.nic.down) for name, each in zip(names, machines, strict=True)]
        self._between: dict[tuple[str, str], Route] = {}
        self._fabrics: dict[str, LeafSpine] = {}
        """By cloud, where there is one."""
        for cloud in cluster.clouds:
            lan = cloud.lan
            self._between[cloud.name, cloud.name] = self._segment(f"{cloud.name} lan", lan.bandwidth, lan.rtt)
            for other in cluster.clouds:
                if other is not cloud:
                    ends = cloud.name, other.name
                    (bandwidth, rtt), loss = cluster.wan_path(*ends), cluster.wan_loss(*ends)
                    carried = interrupted(*ends)
                    capacity_bps = bandwidth if carried is None else carried
                    self._between[ends] = self._segment(" -> ".join(ends), capacity_bps, rtt, loss)
            if lan.fabric:
                nics = {number: each.nic for number, each in enumerate(machines) if each.cloud == cloud.name}
                self._fabrics[cloud.name] = self._leaf_spine(cloud.name, lan.fabric, nics, workers)

    def route(self, sender: int, receiver: int) -> Route:
        """The route of a message between two participants; on one machine, no links and no latency.

        Of several `paths`, a pair always uses the same one.
        """
        one, other = self._machine[sender], self._machine[receiver]
        if one == other:
            return Route((), 0.0)
        links, latency, loss = self._between[self._cloud[one], self._cloud[other]]
        if self._fabrics and (ways := self._over_spines(one, other)):
            links = ways[crc32(b"%d to %d" % (sender, receiver)) % len(ways)]
        return Route((self._up[one], *links, self._down[other]), latency, loss)

    def paths(self, sender: int, receiver: int) -> tuple[Route, ...]:
        """All routes of a message between two participants: one over each spine, if it crosses spines."""
        one, other = self._machine[sender], self._machine[receiver]
        if one == other:
            return (Route((), 0.0),)
        links, latency, loss = self._between[self._cloud[one], self._cloud[other]]
        ways = self._over_spines(one, other) or [links]
        return tuple(Route((self._up[one], *way, self._down[other]), latency, loss) for way in ways)

    @property
    def uplinks(self) -> frozenset[int]:
        """The links that machines send on."""
        return frozenset(self._up)

    @property
    def switches(self) -> list[list[int]]:
        """The outgoing links of each switch: of a LAN, a leaf, a spine, or the begin of a cloud's WAN paths."""
        switches = []
        for cloud in dict.fromkeys(self._cloud):
            here = [machine for machine, its in enumerate(self._cloud) if its == cloud]
            fabric = self._fabrics.get(cloud)
            leaves = range(len(fabric.to_spine)) if fabric else (0,)
            for leaf in leaves:
                at_leaf = [self._down[each] for each in here if not fabric or fabric.leaf[each] == leaf]
                inside = fabric.to_spine[leaf] if fabric else self._between[cloud, cloud].links
                switches.append([*at_leaf, *inside])
            if fabric:
                switches += map(list, zip(*fabric.from_spine, strict=True))
            out = [route.links for (one, other), route in self._between.items() if one == cloud != other]
            switches.append([*chain(*out)])
        return [links for links in switches if links]

    def cloud(self, participant: int) -> str:
        return self._cloud[self._machine[participant]]

    def share_machine(self, one: int, other: int) -> bool:
        return self._machine[one] == self._machine[other]

    def check_restored(self) -> None:
        """Raise ValueError for routes of a checkpoint that are not over existing links."""
        of_leaves = [*chain(*((fabric.to_spine, fabric.from_spine) for fabric in self._fabrics.values()))]
        segments = [*(route.links for route in self._between.values()), *chain(*of_leaves)]
        numbered = (self.capacities_bps, self.names, self._up, self._down, *of_leaves, *segments)
        links = [*self._up, *self._down, *chain(*segments)]
        every = [*range(len(self.capacities_bps))]
        if {*map(type, numbered)} - {list, tuple} or sorted(links) != every or len(self.names) != len(every):
            raise ValueError("its routes are over links that do not exist")

    def _over_spines(self, one: int, other: int) -> list[tuple[int, ...]]:
        """The links between the leaves of two machines, over each spine; none if they are at the same leaf."""
        fabric = self._fabrics.get(self._cloud[one]) if self._cloud[one] == self._cloud[other] else None
        if fabric is None or fabric.leaf[one] == fabric.leaf[other]:
            return []
        return [*zip(fabric.to_spine[fabric.leaf[one]], fabric.from_spine[fabric.leaf[other]], strict=True)]

    def _add(self, name: str, capacity_bps: Schedule) -> int:
        self.names.append(name)
        self.capacities_bps.append(capacity_bps)
        return len(self.capacities_bps) - 1

    def _segment(self, name: str, capacity_bps: Schedule | None, rtt: float, loss: float = 0.0) -> Route:
        return Route((self._add(name, capacity_bps),) if capacity_bps else (), rtt / 2, loss)

    def _leaf_spine(self, cloud: str, fabric: Fabric, nics: Mapping[int, Nic], workers: int) -> LeafSpine:
        """The links of a cloud's fabric; machines from number `workers` on are those of servers."""
        inside = sum(machine < workers for machine in nics)
        leaf = {
            machine: place * fabric.leaves // inside if place < inside else (place - inside) % fabric.leaves
            for place, machine in enumerate(nics)
        }
        links = LeafSpine(leaf, [], [])
        for number in range(fabric.leaves):
            here = [nic for machine, nic in nics.items() if leaf[machine] == number]
            up, down = _of_each(fabric, (nic.up for nic in here)), _of_each(fabric, (nic.down for nic in here))
            spines = range(fabric.spines)
            links.to_spine.append(tuple(self._add(f"{cloud} leaf {number} -> spine {each}", up) for each in spines))
            links.from_spine.append(tuple(self._add(f"{cloud} spine {each} -> leaf {number}", down) for each in spines))
        return links


def _of_each(fabric: Fabric, capacities_bps: Iterable[Schedule]) -> Schedule:
    """The capacity of a leaf's link to or from a spine, given those of its machines' NICs."""
    together = sum(capacity_bps.value_at(0) for capacity_bps in capacities_bps)
    return fabric.bandwidth or Schedule.constant(together / (fabric.oversubscription or 1.0) / fabric.spines)
