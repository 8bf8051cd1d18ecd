"""From a cluster to numbered links: which ones a message between two workers crosses, and how long it is under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlion_sim.scenario import Cluster, Schedule

BITS_PER_BYTE = 8


@dataclass(frozen=True)
class Route:
    """The links that a message crosses, and its one-way latency in seconds."""

    links: tuple[int, ...]
    latency: float


class Topology:
    """Links with their `capacities` over time (bits per second), and the route between any two participants.

    These are the workers, and after them others (parameter servers) on the machines of the workers `others`.

    A message crosses its sender's NIC, then the LAN of their cloud or the WAN path between their clouds, then its
    receiver's NIC. A WAN path is shared by all messages of that direction; a LAN or path of no stated bandwidth is
    never what limits.
    """

    def __init__(self, cluster: Cluster, others: Sequence[int] = ()) -> None:
        self.capacities: list[Schedule] = []
        places = cluster.workers
        self._machine = [*range(len(places)), *others]
        self._cloud = [place.cloud for place in places]
        self._up = [self._add(place.nic.up) for place in places]
        self._down = [self._add(place.nic.down) for place in places]
        self._between: dict[tuple[str, str], Route] = {}
        for cloud in cluster.clouds:
            self._between[cloud.name, cloud.name] = self._segment(cloud.lan.bandwidth, cloud.lan.rtt)
            for other in cluster.clouds:
                if other is not cloud:
                    self._between[cloud.name, other.name] = self._segment(*cluster.wan_path(cloud.name, other.name))

    def route(self, sender: int, receiver: int) -> Route:
        """The route of a message between two participants; on one machine it crosses nothing and takes no time."""
        sender, receiver = self._machine[sender], self._machine[receiver]
        if sender == receiver:
            return Route((), 0.0)
        segment = self._between[self._cloud[sender], self._cloud[receiver]]
        return Route((self._up[sender], *segment.links, self._down[receiver]), segment.latency)

    def _add(self, capacity: Schedule) -> int:
        self.capacities.append(capacity)
        return len(self.capacities) - 1

    def _segment(self, bandwidth: Schedule | None, rtt: float) -> Route:
        return Route((self._add(bandwidth),) if bandwidth else (), rtt / 2)
