"""Synchronized rounds of gradients to parameter servers, over the packet-level network of a leaf-spine fabric."""

from __future__ import annotations

import math
import random
from collections import defaultdict, deque
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from benchmarks.fabric import Fabric
from dlion_sim.bounded_loss.bounds import Bound
from dlion_sim.bounded_loss.cutting import PAYLOAD, Cut
from dlion_sim.learning.models.normalised import resnet18
from dlion_sim.simulation.packets.network import CLASSES, PacketNetwork
from dlion_sim.simulation.packets.parts import Bounded, Endpoint

BACKWARD = 20e-3
"""Seconds of a backward pass, in which tensors become ready one after another, the last layer first."""
FORWARD = 10e-3
"""Seconds from the end of a round to the next backward pass."""
FRONT = 0.5
"""The share of the variables whose small values may be dropped before others."""
HEADER = 100
"""Bytes of a message besides its values."""
JITTER = 1e-3
"""The greatest difference (s) between the begins of workers' passes."""
SLICE = 200_000
"""Bytes of a message, at most: larger tensors go in several, to several servers. P3's 50,000 parameters (recalled)."""


@dataclass(frozen=True)
class Transport:
    """A transport, and the treatment of its packets in switches."""

    name: str
    endpoint: Endpoint
    fabric: Fabric
    spray: bool = False
    by_size: bool = False
    """Whether queues are ordered by the rest of messages."""
    bound: float = 0.0
    """The share of a message that may be missing, with `Bounded` endpoints."""


class Message(NamedTuple):
    """A part of a gradient, sent by every worker."""

    ready: float
    """Seconds after the backward pass began."""
    size: int
    """Bytes."""
    depth: float
    """Of its variable in the model, from 0, the front, to less than 1."""


class Sent(NamedTuple):
    """An arrived message."""

    completion: float
    """Seconds from its readiness until its arrival."""
    size: int
    """Bytes."""
    resent: int
    """Retransmitted bytes."""
    lost: int
    """Missing bytes."""


class Outcome(NamedTuple):
    """The result of some rounds."""

    messages: list[Sent]
    rounds: list[float]
    """Seconds from the begin of the first backward pass until all messages have arrived."""


@cache
def messages() -> tuple[Message, ...]:
    """A worker's messages in a round: the variables of ResNet-18, the last first."""
    sizes = [4 * variable.numel() for variable in resnet18((3, 32, 32), 10).parameters()]
    found = []
    for place in reversed(range(len(sizes))):
        count, depth = -(-sizes[place] // SLICE), place / len(sizes)
        found += [Message(BACKWARD * (1 - depth), sizes[place] // count, depth)] * count
    return tuple(found)


def run(transport: Transport, rounds: int, seed: int, hosts: int | None = None) -> Outcome:
    """Run rounds among the fabric's hosts, or some of them; `seed` determines hosts, paths and jitter.

    Every host is a worker, and servers of messages alternate; messages to the own host are not sent.
    """
    fabric, chance = transport.fabric, random.Random(seed)
    members = chance.sample(range(fabric.hosts), hosts or fabric.hosts)
    network = PacketNetwork(fabric.ports, spray=transport.spray, by_size=transport.by_size, seed=seed)
    connections = {pair: _connect(network, transport, *pair, chance) for pair in permutations(members, 2)}
    traffic = Traffic(network, transport)
    times = []
    for _ in range(rounds):
        began = network.now + FORWARD
        starts = {worker: began + chance.uniform(0, JITTER) for worker in members}
        for ready, worker, server, message in sorted(
            (starts[worker] + message.ready, worker, members[place % len(members)], message)
            for place, message in enumerate(messages())
            for worker in members
        ):
            if worker != server:
                traffic.advance(ready)
                traffic.send(connections[worker, server], message)
        traffic.finish()
        times.append(traffic.latest - began)
    return Outcome(traffic.sent, times)


class Traffic:
    """Messages over a network, with their results."""

    def __init__(self, network: PacketNetwork, transport: Transport) -> None:
        self._network = network
        self._is_bounded = isinstance(transport.endpoint, Bounded)
        self._bound = transport.bound
        self._ready: dict[int, tuple[float, Message]] = {}
        self._waiting: defaultdict[int, deque[tuple[float, Message]]] = defaultdict(deque)
        """By connection: the bounded message in transit, and those after it."""
        self._connections: dict[int, int] = {}
        self._completions: dict[int, float] = {}
        self.sent: list[Sent] = []
        self.latest = 0.0
        """The arrival of the last message (s)."""

    def send(self, connection: int, message: Message) -> None:
        """Send a message."""
        now = self._network.now
        if not self._is_bounded:
            self._ready[self._network.send(connection, message.size)] = now, message
            return
        self._waiting[connection].append((now, message))
        if len(self._waiting[connection]) == 1:
            self._send_next(connection)

    def _send_next(self, connection: int) -> None:
        ready, message = self._waiting[connection][0]
        cut = cut_of(message)
        bound = Bound(np.zeros(len(cut.payloads), np.int32), np.array([int(self._bound * message.size)]))
        number = self._network.send_cut(connection, cut, bound, header=HEADER)
        self._ready[number], self._connections[number] = (ready, message), connection

    def advance(self, until: float) -> None:
        """Advance the network to a time (s)."""
        is_up_to_date = False
        while not is_up_to_date:
            news, is_up_to_date = self._network.step(until)
            for what, number, time in news:
                if what == "delivered":
                    self._completions[number] = time - self._ready[number][0]
                    self.latest = time
                elif what == "acknowledged":
                    self._end(number)

    def finish(self) -> None:
        """Advance until all messages have arrived. Raises RuntimeError if some never do."""
        self.advance(math.inf)
        if self._ready:
            raise RuntimeError(f"{len(self._ready)} messages never arrived")

    def _end(self, number: int) -> None:
        _, message = self._ready.pop(number)
        lost = 0
        connection = self._connections.pop(number, None)
        if connection is not None:
            lost = int((cut_of(message).payloads * (1 - self._network.pieces(number).received)).sum())
        self.sent.append(Sent(self._completions.pop(number), message.size, self._network.resent(number), lost))
        self._network.release(number)
        if connection is not None:
            self._waiting[connection].popleft()
            if self._waiting[connection]:
                self._send_next(connection)


@cache
def cut_of(message: Message) -> Cut:
    """Cut a message like `bounded_loss.cutting`: every other packet has large values, which are sent first."""
    count = -(-message.size // PAYLOAD)
    payloads = np.full(count, PAYLOAD, np.int64)
    payloads[-1] -= count * PAYLOAD - message.size
    numbers = np.arange(count)
    large = numbers % 2 == 0
    return Cut(
        payloads,
        np.zeros(count, np.int32),
        large,
        np.full(count, int(CLASSES * message.depth), np.int8),
        large | (message.depth >= FRONT),
        np.lexsort((numbers, ~large)).astype(np.int32),
    )


def _connect(network: PacketNetwork, transport: Transport, sender: int, receiver: int, chance: random.Random) -> int:
    there, back = transport.fabric.paths(sender, receiver), transport.fabric.paths(receiver, sender)
    for paths in (there, back):  # the first is taken where packets are not sprayed
        chance.shuffle(paths)
    return network.connect(there, back, latency=transport.fabric.latency, endpoint=transport.endpoint)
