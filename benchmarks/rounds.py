"""Synchronized rounds of gradients to parameter servers, over the packet-level network of a leaf-spine fabric."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import NamedTuple

from benchmarks.fabric import Fabric
from dlion_sim.learning.models.resnet18 import resnet18
from dlion_sim.simulation.packets.network import PacketNetwork
from dlion_sim.simulation.packets.parts import Endpoint

BACKWARD = 20e-3
"""Seconds of a backward pass, in which tensors get ready one after another, the last layer's first."""
FORWARD = 10e-3
"""Seconds from the end of a round to the next backward pass."""
JITTER = 1e-3
"""Seconds by which workers' passes begin apart, at most."""
SLICE = 200_000
"""Bytes of a message, at most: larger tensors go in several, to several servers. P3's 50,000 parameters (recalled)."""


@dataclass(frozen=True)
class Transport:
    """What carries messages, and what switches do with its packets."""

    name: str
    endpoint: Endpoint
    fabric: Fabric
    spray: bool = False


class Message(NamedTuple):
    """A part of a gradient, as all workers send it."""

    ready: float
    """Seconds after the backward pass began."""
    size: int
    """Bytes."""
    server: int


class Sent(NamedTuple):
    """A message that has arrived."""

    completion: float
    """Seconds from when it was ready until its server had it."""
    size: int
    """Bytes."""
    resent: int
    """Bytes of it that were sent again."""


class Outcome(NamedTuple):
    """Of some rounds."""

    messages: list[Sent]
    rounds: list[float]
    """Seconds from the first backward pass's begin until all messages were there."""


@cache
def messages() -> tuple[Message, ...]:
    """What a worker sends in a round: the variables of ResNet-18, the last first, to one server after another."""
    sizes = [4 * variable.numel() for variable in resnet18((3, 32, 32), 10).parameters()]
    found = []
    for place, size in enumerate(reversed(sizes), start=1):
        count = -(-size // SLICE)
        found += [(BACKWARD * place / len(sizes), size // count)] * count
    return tuple(Message(ready, size, server) for server, (ready, size) in enumerate(found))


def run(transport: Transport, rounds: int, seed: int, hosts: int | None = None) -> Outcome:
    """Some rounds among the fabric's hosts, or the first few; `seed` draws servers, paths and jitter.

    Every host is a worker, and the server of some messages: its own of those go nowhere.
    """
    fabric, chance = transport.fabric, random.Random(seed)
    hosts = hosts or fabric.hosts
    network = PacketNetwork(fabric.ports, spray=transport.spray, seed=seed)
    ways = {pair: _connect(network, transport, *pair, chance) for pair in permutations(range(hosts), 2)}
    servers = chance.sample(range(hosts), hosts)
    traffic = Traffic(network)
    times = []
    for _ in range(rounds):
        began = network.now + FORWARD
        starts = [began + chance.uniform(0, JITTER) for _ in range(hosts)]
        for ready, worker, server, size in sorted(
            (starts[worker] + message.ready, worker, servers[message.server % hosts], message.size)
            for message in messages()
            for worker in range(hosts)
        ):
            if worker != server:
                traffic.advance(ready)
                traffic.send(ways[worker, server], size)
        traffic.advance(math.inf)
        times.append(traffic.latest - began)
    return Outcome(traffic.sent, times)


class Traffic:
    """Messages over a network, of which it notes what has become."""

    def __init__(self, network: PacketNetwork) -> None:
        self._network = network
        self._under_way: dict[int, tuple[float, int]] = {}
        self._completions: dict[int, float] = {}
        self.sent: list[Sent] = []
        self.latest = 0.0
        """When the last message arrived (seconds)."""

    def send(self, connection: int, size: int) -> None:
        """A message is ready now."""
        network = self._network
        self._under_way[network.send(connection, size)] = network.now, size

    def advance(self, until: float) -> None:
        """Let the network go on until then."""
        for what, message, time in self._network.run(until):
            if what == "delivered":
                self._completions[message] = time - self._under_way[message][0]
                self.latest = time
            elif what == "acknowledged":
                _, size = self._under_way.pop(message)
                self.sent.append(Sent(self._completions.pop(message), size, self._network.resent(message)))


def _connect(network: PacketNetwork, transport: Transport, sender: int, receiver: int, chance: random.Random) -> int:
    there, back = transport.fabric.paths(sender, receiver), transport.fabric.paths(receiver, sender)
    for paths in (there, back):  # the first is taken where packets are not sprayed
        chance.shuffle(paths)
    return network.connect(there, back, latency=transport.fabric.latency, endpoint=transport.endpoint)
