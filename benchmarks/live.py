"""Bytes per second from one live node to another on this machine, alternating with iperf3 if it is installed.

Messages are whole gradients of 17 MB, checked and decoded by the receiver as in a run. Senders and receivers are
processes, with one TCP connection.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import socket
import subprocess
import sys
import time
from functools import partial

import torch
from rich.console import Console

from benchmarks.measuring import options, ratio, table
from dlion_sim.assembly import Transfer
from dlion_sim.live.connection import Address, listen
from dlion_sim.live.frames import Kind
from dlion_sim.live.handshake import Credentials
from dlion_sim.live.identity import Identity
from dlion_sim.live.mesh import Mesh
from dlion_sim.live.node_config import Timeouts
from dlion_sim.live.rendezvous import Rendezvous
from dlion_sim.live.session import Terms
from dlion_sim.protocol.messages import Contribution, Message

ENTRIES = 4_259_274
"""Parameters of DLion's 17 MB network."""
MESSAGES, SHORT = 150, 5
QUEUED = 3
"""Messages queued at the link."""
SECONDS = 3
HOST = "127.0.0.1"


class Node:
    """Node 0 sends, node 1 receives."""

    def __init__(self, rank: int, messages: int) -> None:
        self.rank = rank
        self.messages = messages
        self.gradient = torch.randn(ENTRIES)
        self.queued = 0
        self.times: list[float] = []
        self.over = asyncio.Event()

    async def run(self, ports: list[int]) -> None:
        """Run until all messages have arrived; the receiver prints the bytes per second."""
        addresses = [Address(HOST, port) for port in ports]
        credentials = Credentials(Identity.of_secret(b"benchmark", self.rank), b"b" * 32)
        rendezvous = Rendezvous(
            self.rank, [1 - self.rank], addresses, listen(addresses[self.rank]), credentials, Timeouts()
        )
        async with asyncio.TaskGroup() as tasks:
            mesh = Mesh(Terms(participants=2, parameters=ENTRIES, silence=30.0), delays={}, tasks=tasks, hub=self)
            self.mesh = mesh
            meeting = tasks.create_task(rendezvous.run())
            for peer, connections in (await rendezvous.meet([1 - self.rank])).items():
                mesh.connect(peer, connections)
            meeting.cancel()
            if self.rank == 0:
                for _ in range(QUEUED):
                    self.send()
            await self.over.wait()
            if self.rank == 1:
                mesh.tell(Kind.DONE)
            await mesh.close()
        if self.rank == 1:
            size = Message(0, Contribution(0, 1), (self.gradient,)).size
            print(size * (len(self.times) - 1) / (self.times[-1] - self.times[0]))

    def send(self) -> None:
        """Queue the next gradient."""
        if self.queued < self.messages:
            self.mesh.send(1, Message(0, Contribution(self.queued, 1), (self.gradient,)))
            self.queued += 1

    @property
    def now(self) -> float:
        return time.perf_counter()

    def arrived(self, message: Message) -> None:
        self.times.append(self.now)
        if len(self.times) == self.messages:
            self.over.set()

    def left(self, transfer: Transfer) -> None:
        """Ignore a sent message."""

    def sent(self, peer: int, message: Message) -> None:
        self.send()

    def timed(self, peer: int, message: Message, seconds: float) -> None:
        """Ignore the duration of a message."""

    def heard(self, kind: Kind, rank: int) -> None:
        if kind is Kind.DONE:
            self.over.set()

    def lost(self, peer: int, reason: str) -> None:
        self.over.set()


def nodes(messages: int) -> float:
    """Bytes per second from node to node."""
    with socket.create_server((HOST, 0)) as one, socket.create_server((HOST, 0)) as other:
        ports = [str(each.getsockname()[1]) for each in (one, other)]
    command = [sys.executable, "-m", "benchmarks.live", "--ports", *ports, "--messages", str(messages), "--node"]
    with subprocess.Popen([*command, "0"]):
        return float(subprocess.run([*command, "1"], check=True, capture_output=True, text=True).stdout)


def iperf3(seconds: int) -> float:
    """Bytes per second at iperf3's receiver."""
    with socket.create_server((HOST, 0)) as free:
        port = str(free.getsockname()[1])
    with subprocess.Popen(["iperf3", "-s", "-1", "-p", port], stdout=subprocess.DEVNULL):
        time.sleep(0.5)
        command = ["iperf3", "-c", HOST, "-p", port, "-t", str(seconds), "-J"]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return float(answer["end"]["sum_received"]["bits_per_second"] / 8)


def main() -> None:
    """Measure both, alternating."""
    parser = options(__doc__, repeat=5)
    parser.add_argument("--node", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--ports", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--messages", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.node is not None:
        torch.set_num_threads(1)
        asyncio.run(Node(arguments.node, arguments.messages).run(arguments.ports))
        return
    repeat, messages, seconds = (1, SHORT, 1) if arguments.short else (arguments.repeat, MESSAGES, SECONDS)
    ways = {"live nodes": partial(nodes, messages)}
    if shutil.which("iperf3"):
        ways = {"iperf3": partial(iperf3, seconds), **ways}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeat):
        for name, measure in ways.items():
            rates[name].append(measure())
    shown = table("live: whole gradients of 17 MB over loopback", "", "GB/s", "times iperf3")
    for name, measured in rates.items():
        median = sorted(measured)[repeat // 2] / 1e9
        times = ratio(measured, rates["iperf3"]) if "iperf3" in rates else "not installed"
        shown.add_row(name, f"{median:.2f}", times)
    Console().print(shown)


if __name__ == "__main__":
    main()
