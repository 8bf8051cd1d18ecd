"""Packet-hops a second of the packet-level network, against a plain event loop in C++ where g++ is installed.

Both have the same model: segments of 1448 bytes, host NICs that pull, ports with strict priorities that drop their tail
and mark above a threshold, an acknowledgement for every second segment, DCTCP's window. A packet-hop is one packet, or
acknowledgement, sent over one link. Seconds are those of the processor, as each uses one core and a machine may be
shared. The C++ program is `packets.cpp` beside this file.
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
from rich.table import Table

from benchmarks.fabric import Fabric
from benchmarks.measuring import options, ratio
from dlion_sim.simulation.packets.network import PacketNetwork, Port

SOURCE = Path(__file__).with_name("packets.cpp")
UNBOUNDED = 1 << 40
"""Bytes of a buffer."""


class Connection(NamedTuple):
    """The way between two hosts, and back."""

    latency: float
    """Seconds one way."""
    there: tuple[int, ...]
    """Ports."""
    back: tuple[int, ...]


class Message(NamedTuple):
    """What a host sends."""

    at: float
    """Seconds."""
    connection: int
    size: int
    """Bytes."""


class Workload(NamedTuple):
    """What both programs are given."""

    ports: list[Port]
    connections: list[Connection]
    messages: list[Message]
    """In the order of their times."""


class Run(NamedTuple):
    """What came of it."""

    hops: int
    cpu: float
    """Seconds."""
    median: float
    """Seconds from a message's start until it is delivered."""


def leaf_spine(messages: int) -> Workload:
    """144 hosts send messages of up to 400 kB to random others, at 0.6 of what their NICs carry."""
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
    """31 hosts of a star of 10 Gbps send 1 MB to the same one at once, every 50 ms."""
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
"""Name, what makes it, how much of it, how much with `--short`."""


def run(workload: Workload) -> Run:
    """By the packet-level network."""
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
    """By the C++ program."""

    def __init__(self, folder: Path) -> None:
        self._program = folder / "packets"
        subprocess.run(["g++", "-O3", "-std=c++17", str(SOURCE), "-o", str(self._program)], check=True)

    def run(self, workload: Workload) -> Run:
        """Told as text, of which reading does not count."""
        told = subprocess.run(
            [str(self._program)], input="\n".join(_lines(workload)), check=True, capture_output=True, text=True
        ).stdout
        hops, cpu, median = re.search(r"hops=(\d+) cpu=([\d.]+) .*median=([\d.]+)", told).groups()  # type: ignore[union-attr]
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
    """Run each workload `--repeat` times, taking turns with the C++ program."""
    parser = options(__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    repeat = 1 if arguments.short else arguments.repeat
    run(incast(1))  # compiles
    table = Table(title="packets: millions of packet-hops per CPU second")
    for column in ("workload", "packet-hops", "dlion_sim", "C++", "ratio", "median completion", "C++'s"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        plain = Plain(Path(folder)) if shutil.which("g++") else None
        for name, make, size, short in WORKLOADS:
            workload = make(short if arguments.short else size)
            ours, theirs = [], []
            for _ in range(repeat):
                ours.append(run(workload))
                if plain:
                    theirs.append(plain.run(workload))
            table.add_row(
                name,
                f"{ours[0].hops:,}",
                _rate(ours),
                _rate(theirs) if plain else "not installed",
                ratio([r.cpu / r.hops for r in theirs], [r.cpu / r.hops for r in ours]) if plain else "-",
                f"{ours[0].median * 1e3:.3f} ms",
                f"{theirs[0].median * 1e3:.3f} ms" if plain else "-",
            )
    Console().print(table)


def _rate(runs: list[Run]) -> str:
    rates = sorted(r.hops / r.cpu / 1e6 for r in runs)
    return f"{rates[len(rates) // 2]:.2f}"


if __name__ == "__main__":
    main()
