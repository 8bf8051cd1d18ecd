"""From a cluster to numbered links: which ones a message between two workers crosses, and how long it is under way."""

from __future__ import annotations

from dataclasses import dataclass, field

from dlion_sim.scenario import Cluster, Schedule

BITS_PER_BYTE = 8


@dataclass(frozen=True)
class Route:
    """The links that a message crosses, and its one-way latency in seconds."""

    links: tuple[int, ...]
    latency: float


@dataclass
class Topology:
    """Links with their capacities over time (bits per second), and the route of each ordered pair of workers.

    A message crosses its sender's NIC, then the LAN of their cloud or the WAN path between their clouds, then its
    receiver's NIC. A WAN path is shared by all messages of that direction; a LAN or path of no stated bandwidth is
    never what limits.
    """

    capacities: list[Schedule] = field(default_factory=list)
    routes: dict[tuple[int, int], Route] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Cluster) -> Topology:
        """The topology of a cluster."""
        topology = cls()
        places = cluster.workers
        up = [topology._add(place.nic.up) for place in places]
        down = [topology._add(place.nic.down) for place in places]
        between: dict[tuple[str, str], Route] = {}
        for cloud in cluster.clouds:
            between[cloud.name, cloud.name] = topology._segment(cloud.lan.bandwidth, cloud.lan.rtt)
            for other in cluster.clouds:
                if other is not cloud:
                    between[cloud.name, other.name] = topology._segment(*cluster.wan_path(cloud.name, other.name))
        for sender in places:
            for receiver in places:
                if sender.index != receiver.index:
                    segment = between[sender.cloud, receiver.cloud]
                    links = (up[sender.index], *segment.links, down[receiver.index])
                    topology.routes[sender.index, receiver.index] = Route(links, segment.latency)
        return topology

    def _add(self, capacity: Schedule) -> int:
        self.capacities.append(capacity)
        return len(self.capacities) - 1

    def _segment(self, bandwidth: Schedule | None, rtt: float) -> Route:
        return Route((self._add(bandwidth),) if bandwidth else (), rtt / 2)
