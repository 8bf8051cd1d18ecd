"""From a cluster to numbered links: which ones a message between two workers crosses, and how long it is under way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from dlion_sim.scenario import Cluster, Schedule, WorkerPlace
from dlion_sim.scenario.topology import ServerHost

BITS_PER_BYTE = 8


class Route(NamedTuple):
    """The links that a message crosses, its one-way latency in seconds, and the part of its packets that are lost."""

    links: tuple[int, ...]
    latency: float
    loss: float = 0.0


class Routing:
    """Links with their `capacities_bps` over time, and the route between any two participants.

    These are the workers, and after them parameter servers on the machines that `servers` names: a worker's, or their
    own.

    A message crosses its sender's NIC, then the LAN of their cloud or the WAN path between their clouds, then its
    receiver's NIC. A WAN path is shared by all messages of that direction; a LAN or path of no stated bandwidth is
    never what limits.
    """

    def __init__(self, cluster: Cluster, servers: Sequence[int | ServerHost] = ()) -> None:
        self.capacities_bps: list[Schedule] = []
        workers = len(cluster.workers)
        own = [server for server in servers if isinstance(server, ServerHost)]
        machines: list[WorkerPlace | ServerHost] = [*cluster.workers, *own]
        self._machine: list[int] = [*range(workers), *_machines_of(servers, workers)]
        self._cloud = [machine.cloud for machine in machines]
        self._up = [self._add(machine.nic.up) for machine in machines]
        self._down = [self._add(machine.nic.down) for machine in machines]
        self._between: dict[tuple[str, str], Route] = {}
        for cloud in cluster.clouds:
            self._between[cloud.name, cloud.name] = self._segment(cloud.lan.bandwidth, cloud.lan.rtt)
            for other in cluster.clouds:
                if other is not cloud:
                    ends = cloud.name, other.name
                    self._between[ends] = self._segment(*cluster.wan_path(*ends), cluster.wan_loss(*ends))

    def route(self, sender: int, receiver: int) -> Route:
        """The route of a message between two participants; on one machine it crosses nothing and takes no time."""
        sender, receiver = self._machine[sender], self._machine[receiver]
        if sender == receiver:
            return Route((), 0.0)
        segment = self._between[self._cloud[sender], self._cloud[receiver]]
        return Route((self._up[sender], *segment.links, self._down[receiver]), segment.latency, segment.loss)

    def share_machine(self, one: int, other: int) -> bool:
        """Whether messages between two participants cross nothing."""
        return self._machine[one] == self._machine[other]

    def check_restored(self) -> None:
        """Raise ValueError for routes, which may come from anybody, that are not over the links that there are."""
        segments = [route.links for route in self._between.values()]
        numbered = (self.capacities_bps, self._up, self._down, *segments)
        links = [*self._up, *self._down, *chain(*segments)]
        if {*map(type, numbered)} - {list, tuple} or sorted(links) != [*range(len(self.capacities_bps))]:
            raise ValueError("its routes lead over links that are not there")

    def _add(self, capacity_bps: Schedule) -> int:
        self.capacities_bps.append(capacity_bps)
        return len(self.capacities_bps) - 1

    def _segment(self, capacity_bps: Schedule | None, rtt: float, loss: float = 0.0) -> Route:
        return Route((self._add(capacity_bps),) if capacity_bps else (), rtt / 2, loss)


def _machines_of(servers: Sequence[int | ServerHost], workers: int) -> Iterator[int]:
    """The machine of each server: a worker's number, or the next one after the workers'."""
    own = workers
    for server in servers:
        if isinstance(server, ServerHost):
            yield own
            own += 1
        else:
            yield server
