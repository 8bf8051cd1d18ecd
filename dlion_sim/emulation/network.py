"""A cluster's network in Mininet: a switch for each cloud, a host for each machine, a path between any two clouds.

    host --(NIC)-- switch --- router --(WAN path)-- router --- switch --(NIC)-- host

A link's two directions are limited separately at their senders: a host's sending on the host, its receiving at its
port of the switch, a WAN path at the sending router. A LAN of a stated bandwidth is a node of its own at the switch,
which all traffic between hosts of the cloud crosses.

Mininet's own limits (TCLink) are not used: they go no higher than 1 Gbps, have a queue of a thousand frames, and drop
it when they change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ipaddress import IPv4Address
from itertools import combinations, permutations, product
from typing import Any

from mininet.link import Link as Cable
from mininet.log import setLogLevel
from mininet.node import Node
from mininet.nodelib import LinuxBridge

from dlion_sim.assembly import server_hosts
from dlion_sim.assembly.outages import Outages
from dlion_sim.emulation.leftovers import workplace
from dlion_sim.emulation.links import CONGESTION_CONTROL, Link, Path, run, with_routes
from dlion_sim.emulation.queueing import Queueing
from dlion_sim.emulation.shaping import Flow, shape, unbundled
from dlion_sim.errors import InputError
from dlion_sim.scenario import Cluster, Scenario, Schedule, WorkerPlace
from dlion_sim.scenario.system import ServerHost, machines_of

LEAST_DELAY = 0.001
"""Seconds; shorter delays are omitted: a message takes about as long on this machine."""
_MOST_CLOUDS = 250
_ROUTER, _LAN = 0xFFFE, 0xFFFD
"""Their numbers in a cloud's addresses."""
_WAN = int(IPv4Address("172.16.0.0"))
_ANY_NODE = (
    "ip link set dev lo up",
    f"echo {CONGESTION_CONTROL} > /proc/sys/net/ipv4/tcp_congestion_control",
)
_FORWARDING = (
    "echo 1 > /proc/sys/net/ipv4/ip_forward",
    # Hosts must not learn another route.
    "for file in /proc/sys/net/ipv4/conf/*/send_redirects; do echo 0 > $file; done",
)


class Network:
    """The network of a cluster, for workers and after them parameter servers on the machines that `servers` names.

    It exists within the block. In `outages` paths have hardly any capacity; in those that last longer than `silence`,
    none at all, so that connections over them end.
    """

    def __init__(
        self,
        cluster: Cluster,
        servers: Sequence[int | ServerHost] = (),
        *,
        queueing: Queueing,
        outages: Outages | None = None,
        silence: float = math.inf,
    ) -> None:
        if len(cluster.clouds) > _MOST_CLOUDS:
            raise InputError(
                f"{len(cluster.clouds)} clouds cannot be emulated", path="cluster.clouds", allowed=f"{_MOST_CLOUDS}"
            )
        if lossy := cluster.first_loss:
            raise InputError("losses cannot be emulated", path=".".join(map(str, ("cluster", *lossy))), allowed="0")
        if switches := cluster.first_fabric:
            path = ".".join(map(str, ("cluster", *switches)))
            raise InputError("a fabric cannot be emulated", path=path, allowed="a LAN of one switch")
        self._cluster = cluster
        self._queueing = queueing
        self._outages = outages
        self._silence = silence
        own = [server for server in servers if isinstance(server, ServerHost)]
        self._machines: Sequence[WorkerPlace | ServerHost] = [*cluster.workers, *own]
        self.machine = machines_of(len(cluster.workers), servers)
        """The number of each participant's machine: workers' first, then servers' own."""
        self._setup: dict[Any, list[str]] = {}
        """Shell commands of each node."""
        self.nodes: dict[Any, str] = {}
        """The description of each Mininet node."""
        self.hosts: list[Any] = []
        """The Mininet node of each machine."""
        self.links: list[Link] = []
        """Those with a limit or a delay."""
        self.paths: list[Path] = []
        """Directions of paths between clouds with outages."""

    def host(self, participant: int) -> Any:
        """The Mininet node of the machine that a participant is on."""
        return self.hosts[self.machine[participant]]

    def address(self, participant: int) -> str:
        """The IP address of the machine that a participant is on."""
        machine = self.machine[participant]
        return _address(self._cloud_of(machine), machine + 1)

    def delay(self, sender: int, receiver: int) -> float:
        """The delay of a message between two participants (s), as the scenario states it."""
        here, there = self.machine[sender], self.machine[receiver]
        clouds = [self._cluster.clouds[self._cloud_of(machine)] for machine in (here, there)]
        if here == there:
            return 0.0
        if clouds[0] is clouds[1]:
            return clouds[0].lan.rtt / 2
        return self._cluster.wan_path(clouds[0].name, clouds[1].name)[1] / 2

    def missing_delay(self, sender: int, receiver: int) -> float:
        """The part of it that this network lacks: the receiver has to hold messages back for so long."""
        across = self._cloud_of(self.machine[sender]) != self._cloud_of(self.machine[receiver])
        delay = self.delay(sender, receiver)
        return 0.0 if delay < LEAST_DELAY or (across and self._queueing.is_delayed) else delay

    def __enter__(self) -> Network:
        setLogLevel("error")  # It warns of a firewall, of which namespaces of our own have none.
        with ExitStack() as undo:
            undo.callback(self._end)
            clouds = range(len(self._cluster.clouds))
            names = [cloud.name for cloud in self._cluster.clouds]
            switches = [
                self._node(LinuxBridge(f"s{cloud}", inNamespace=True), f"switch of {names[cloud]}") for cloud in clouds
            ]
            routers = [
                self._router(f"r{cloud}", f"router of {names[cloud]}", cloud, _ROUTER, switches[cloud])[0]
                for cloud in clouds
            ]
            for cloud in clouds:
                self._lan(cloud, switches[cloud])
            for machine in range(len(self._machines)):
                self._host(machine, switches[self._cloud_of(machine)])
            for pair, (one, other) in enumerate(combinations(clouds, 2)):
                self._path(pair, one, other, routers)
            for switch in switches:
                switch.start([])
            for node, lines in self._setup.items():
                run(node, "sh", "-ec", "\n".join(lines))
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _router(self, name: str, what: str, cloud: int, number: int, switch: Any) -> tuple[Any, str]:
        """A forwarding node at a cloud's switch, and its device there."""
        router = self._node(Node(name), what, *_FORWARDING)
        device, _ = self._plug(router, switch, _address(cloud, number))
        return router, device

    def _lan(self, cloud: int, switch: Any) -> None:
        """The node that limits a cloud's LAN, if its bandwidth is stated."""
        spec = self._cluster.clouds[cloud]
        if spec.lan.bandwidth:
            node, device = self._router(f"lan{cloud}", f"LAN of {spec.name}", cloud, _LAN, switch)
            self._limit(f"{spec.name} lan", node, device, spec.lan.bandwidth, permutations(self._addresses(cloud), 2))

    def _host(self, machine: int, switch: Any) -> None:
        spec, cloud = self._machines[machine], self._cloud_of(machine)
        name = spec.name if isinstance(spec, WorkerPlace) else f"{spec.cloud} server"
        host = self._node(Node(f"h{machine}"), name)
        self.hosts.append(host)
        device, port = self._plug(host, switch, _address(cloud, machine + 1))
        lines = self._setup[host]
        lines.append(unbundled(device))
        lines.append(f"ip route add default via {_address(cloud, _ROUTER)}")
        if self._cluster.clouds[cloud].lan.bandwidth:
            lines.append(f"ip route add {_address(cloud, _LAN)} dev {device}")
            lines.append(f"ip route replace {_subnet(cloud)} via {_address(cloud, _LAN)} dev {device}")
        here = _address(cloud, machine + 1)
        others = [address for each in range(len(self._cluster.clouds)) for address in self._addresses(each)]
        others.remove(here)
        self._limit(f"{name} up", host, device, spec.nic.up, product([here], others))
        self._limit(f"{name} down", switch, port, spec.nic.down, product(others, [here]))

    def _path(self, pair: int, one: int, other: int, routers: Sequence[Any]) -> None:
        """The path between two clouds, both ways."""
        cable = Cable(routers[one], routers[other])
        a, b = (IPv4Address(_WAN + 2 * pair + end) for end in (0, 1))
        for here, there, device, address, gateway in ((one, other, cable.intf1, a, b), (other, one, cable.intf2, b, a)):
            self._assign(device, f"{address}/31")
            self._setup[routers[here]].append(f"ip route add {_subnet(there)} via {gateway}")
            names = [self._cluster.clouds[cloud].name for cloud in (here, there)]
            bandwidth, rtt = self._cluster.wan_path(*names)
            if self._outages and (outages := self._outages.link_outages(*names)):
                long = [each for each in outages if each.end - each.begin > self._silence]
                interrupted = self._outages.links(*names)
                assert interrupted
                assert bandwidth
                bandwidth = with_routes(long, interrupted, bandwidth)
                self.paths.append(Path(routers[here], _subnet(there), str(gateway), long))
            delay = rtt / 2 if self._queueing.is_delayed else 0.0
            flows = product(self._addresses(here), self._addresses(there))
            self._limit(" to ".join(names), routers[here], str(device), bandwidth, flows, delay)

    def _limit(
        self, name: str, node: Any, device: str, capacity: Schedule | None, flows: Iterable[Flow], delay: float = 0.0
    ) -> None:
        bps, crossing = capacity.value_at(0.0) if capacity else None, list(flows)
        queues = self._queueing.at_link(crossing, is_host=node in self.hosts)
        self._setup[node] += shape(device, bps, delay, queues)
        if capacity or delay:
            self.links.append(Link(name, node, device, capacity, delay, crossing, queues))

    def _addresses(self, cloud: int) -> list[str]:
        """Of a cloud's machines."""
        machines = range(len(self._machines))
        return [_address(cloud, machine + 1) for machine in machines if self._cloud_of(machine) == cloud]

    def _plug(self, node: Any, switch: Any, address: str) -> tuple[str, str]:
        """Connect a node with a switch; its device and its port there."""
        cable = Cable(node, switch)
        self._assign(cable.intf1, f"{address}/16")
        return str(cable.intf1), str(cable.intf2)

    def _assign(self, device: Any, address: str) -> None:
        """Give a device an address, known to Mininet's command line too."""
        self._setup[device.node].append(f"ip addr add {address} dev {device}")
        device.ip, device.prefixLen = address.split("/")

    def _node(self, node: Any, what: str, *setup: str) -> Any:
        self.nodes[node] = what
        self._setup[node] = [*_ANY_NODE, *setup]
        return node

    def _cloud_of(self, machine: int) -> int:
        names = [cloud.name for cloud in self._cluster.clouds]
        return names.index(self._machines[machine].cloud)

    def _end(self) -> None:
        for node in self._setup:
            node.terminate()


@contextmanager
def network_of(scenario: Scenario, *, fair: bool = True) -> Iterator[Network]:
    """The network that a scenario describes at its start, without nodes; after the block nothing of it is left.

    Raises InputError for a scenario whose network cannot be emulated.
    """
    queueing = Queueing.of(scenario.network.model, fair=fair)
    network = Network(scenario.cluster, server_hosts(scenario), queueing=queueing)
    with workplace(), network:
        yield network


def _address(cloud: int, number: int) -> str:
    return f"10.{cloud}.{number >> 8}.{number & 0xFF}"


def _subnet(cloud: int) -> str:
    return f"10.{cloud}.0.0/16"
