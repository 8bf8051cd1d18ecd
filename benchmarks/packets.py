"""Packet-hops per second of the packet-level network, compared with a plain event loop in C++ if g++ is installed.

Both have the same model: segments of 1448 bytes, host NICs that pull, ports with strict priorities, tail drop and
marking above a threshold, an acknowledgement for every second segment, DCTCP's window. A packet-hop is one packet, or
acknowledgement, over one link. Times are CPU seconds, as each uses one core and a machine may be shared. The C++
program is `packets.cpp`.
"""

from __future__ import annotations

import math
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from benchmarks.fabric import Fabric
from benchmarks.measuring import options, ratio, table
from dlion_sim.simulation.packets.network import PacketNetwork, Port

SOURCE = Path(__file__).with_name("packets.cpp")
UNBOUNDED = 1 << 40
"""Bytes of a buffer."""


class Connection(NamedTuple):
    """The paths between two hosts."""

    latency: float
    """Seconds one way."""
    there: tuple[int, ...]
    """Ports."""
    back: tuple[int, ...]


class Message(NamedTuple):
    """A message of a host."""

    at: float
    """Seconds."""
    connection: int
    size: int
    """Bytes."""


class Workload(NamedTuple):
    """The input of both programs."""

    ports: list[Port]
    connections: list[Connection]
    messages: list[Message]
    """In the order of their times."""


class Run(NamedTuple):
    """The result of a workload."""

    hops: int
    cpu: float
    """Seconds."""
    median: float
    """Seconds from a message's start until it is delivered."""


def leaf_spine(messages: int) -> Workload:
    """144 hosts send messages of up to 400 kB to random others, at a load of 0.6."""
    fabric = Fabric(buffer=500e3, mark_above=100e3)
    chance = random.Random(0)
    connections: dict[tuple[int, int], int] = {}
    routes: list[Connection] = []
    sent: list[Message] = []
    now = 0.0
    mean = 200e3
    for _ in range(messages):
        now += chance.expovariate(0.6 * fabric.hosts * fabric.rate / mean)
        sender, receiver = chance.sample(range(fabric.hosts), 2)
        if (sender, receiver) not in connections:
            connections[sender, receiver] = len(routes)
            there, back = (chance.choice(fabric.paths(*pair)) for pair in ((sender, receiver), (receiver, sender)))
            routes.append(Connection(fabric.latency, there, back))
        sent.append(Message(now, connections[sender, receiver], chance.randint(1, int(2 * mean))))
    return Workload(fabric.ports, routes, sent)


def incast(rounds: int) -> Workload:
    """31 hosts of a star of 10 Gbps send 1 MB to the same host at the same time, every 50 ms."""
    hosts, rate = 32, 10e9 / 8
    ports = [Port(rate)] * hosts + [Port(rate, buffer=500e3, mark_above=100e3)] * hosts
    routes = [Connection(10e-6, (host, hosts), (0, hosts + host)) for host in range(1, hosts)]
    return Workload(ports, routes, [Message(50e-3 * k, c, 1_000_000) for k in range(rounds) for c in range(hosts - 1)])


def wan(rounds: int) -> Workload:
    """Six sites, each with a NIC of 1 Gbps and a path to each other of 10 to 60 Mbps and 10 to 60 ms, send 5 MB to each
    other site every 10 s."""
    sites, nic = 6, 1e9 / 8
    ports = [Port(nic)] * sites + [Port(nic, buffer=500e3)] * sites
    paths = {}
    for sender, receiver in permutations(range(sites), 2):
        paths[sender, receiver] = len(ports)
        ports.append(Port((1 + (sender + 2 * receiver) % 6) * 10e6 / 8, buffer=250e3))
    routes = [
        Connection(
            (1 + (sender + receiver) % 6) * 10e-3,
            (sender, path, sites + receiver),
            (receiver, paths[receiver, sender], sites + sender),
        )
        for (sender, receiver), path in paths.items()
    ]
    return Workload(ports, routes, [Message(10.0 * k, c, 5_000_000) for k in range(rounds) for c in range(len(routes))])


WORKLOADS: tuple[tuple[str, Callable[[int], Workload], int, int], ...] = (
    ("leaf-spine of 144, 100 Gbps", leaf_spine, 8000, 100),
    ("incast of 31, 10 Gbps", incast, 50, 1),
    ("WAN of 6 sites", wan, 10, 1),
)
"""Name, function, size, and size with `--short`."""


def run(workload: Workload) -> Run:
    """Run a workload in the packet-level network."""
    network = PacketNetwork(workload.ports)
    for latency, there, back in workload.connections:
        network.connect([there], [back], latency=latency)
    began: dict[int, float] = {}
    took = []

    def note(until: float) -> None:
        for what, message, then in network.run(until):
            if what == "delivered":
                took.append(then - began.pop(message))
            elif what == "acknowledged":
                network.release(message)

    start = time.process_time()
    for at, connection, size in workload.messages:
        note(at)
        began[network.send(connection, size)] = at
    note(math.inf)
    return Run(network.hops, time.process_time() - start, sorted(took)[len(took) // 2])


class Plain:
    """The C++ program."""

    def __init__(self, folder: Path) -> None:
        self._program = folder / "packets"
        subprocess.run(["g++", "-O3", "-std=c++17", str(SOURCE), "-o", str(self._program)], check=True)

    def run(self, workload: Workload) -> Run:
        """Run a workload; reading it does not count."""
        output = subprocess.run(
            [str(self._program)], input="\n".join(_lines(workload)), check=True, capture_output=True, text=True
        ).stdout
        hops, cpu, median = re.search(r"hops=(\d+) cpu=([\d.]+) .*median=([\d.]+)", output).groups()  # type: ignore[union-attr]
        return Run(int(hops), float(cpu), float(median))


def _lines(workload: Workload) -> Iterator[str]:
    yield f"{len(workload.ports)} {len(workload.connections)} {len(workload.messages)}"
    for port in workload.ports:
        yield f"{port.rate!r} {int(min(port.buffer, UNBOUNDED))} {int(min(port.mark_above, UNBOUNDED))}"
    for latency, there, back in workload.connections:
        yield f"{latency!r} {len(there)} {' '.join(map(str, there))} {len(back)} {' '.join(map(str, back))}"
    for at, connection, size in workload.messages:
        yield f"{at!r} {connection} {size}"


def main() -> None:
    """Run each workload `--repeat` times, alternating with the C++ program."""
    arguments = options(__doc__, repeat=3).parse_args()
    repeat = 1 if arguments.short else arguments.repeat
    run(incast(1))  # compiles
    columns = ("workload", "packet-hops", "dlion_sim", "C++", "ratio", "median completion", "C++'s")
    shown = table("packets: millions of packet-hops per CPU second", *columns)
    with tempfile.TemporaryDirectory() as folder:
        plain = Plain(Path(folder)) if shutil.which("g++") else None
        for name, make, size, short in WORKLOADS:
            workload = make(short if arguments.short else size)
            ours, theirs = [], []
            for _ in range(repeat):
                ours.append(run(workload))
                if plain:
                    theirs.append(plain.run(workload))
            shown.add_row(
                name,
                f"{ours[0].hops:,}",
                _rate(ours),
                _rate(theirs) if plain else "not installed",
                ratio([r.cpu / r.hops for r in theirs], [r.cpu / r.hops for r in ours]) if plain else "-",
                f"{ours[0].median * 1e3:.3f} ms",
                f"{theirs[0].median * 1e3:.3f} ms" if plain else "-",
            )
    Console().print(shown)


def _rate(runs: list[Run]) -> str:
    rates = sorted(r.hops / r.cpu / 1e6 for r in runs)
    return f"{rates[len(rates) // 2]:.2f}"


if __name__ == "__main__":
    main()
