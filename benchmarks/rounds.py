"""Synchronized rounds of gradients to parameter servers, over the packet-level network of a leaf-spine fabric."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

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


class Outcome(NamedTuple):
    """Of all messages of some rounds."""

    completion: np.ndarray
    """Seconds from when a message was ready until its server had it, [messages]."""
    resent: np.ndarray
    """Bytes, [messages]."""
    size: int
    """Bytes of all."""
    rounds: np.ndarray
    """Seconds from the first backward pass's begin until all messages were there, [rounds]."""
    hops: int


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
    times, completion, resent, size = [], [], [], 0
    for _ in range(rounds):
        starts = [chance.uniform(0, JITTER) for _ in range(hosts)]
        planned = sorted(
            (starts[worker] + message.ready, worker, servers[message.server % hosts], message.size)
            for message in messages()
            for worker in range(hosts)
        )
        began = network.now + FORWARD
        under_way: dict[int, float] = {}
        end = began

        def note(until: float) -> None:
            nonlocal end
            for what, message, time in network.run(until):
                if what == "delivered":
                    completion.append(time - under_way[message])
                    end = time
                elif what == "acknowledged":
                    del under_way[message]
                    resent.append(network.resent(message))

        for ready, worker, server, length in planned:
            if worker != server:
                note(began + ready)
                under_way[network.send(ways[worker, server], length)] = began + ready
                size += length
        note(math.inf)
        times.append(end - began)
    return Outcome(np.array(completion), np.array(resent), size, np.array(times), network.hops)


def _connect(network: PacketNetwork, transport: Transport, sender: int, receiver: int, chance: random.Random) -> int:
    there, back = transport.fabric.paths(sender, receiver), transport.fabric.paths(receiver, sender)
    for paths in (there, back):  # the first is taken where packets are not sprayed
        chance.shuffle(paths)
    return network.connect(there, back, latency=transport.fabric.latency, endpoint=transport.endpoint)
