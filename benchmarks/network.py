"""Flows per second of the simulated network, compared with SimGrid's C++ if installed (Debian: libsimgrid-dev).

Both share links max-min fairly or, with `--lv08`, by SimGrid's default model LV08.

Each worker computes, sends a message to each peer, and continues when its messages are delivered and its peers' have
arrived: all to all, and on a sparse graph. SimGrid runs the same in `simgrid_mesh.cpp`.
"""

from __future__ import annotations

import gc
import math
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

from rich.console import Console

from benchmarks.measuring import options, ratio, table
from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.scenario import Lv08, Network, from_data
from dlion_sim.simulation.carrier import Listener
from dlion_sim.simulation.delivery import Transport
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.routing import Routing
from dlion_sim.simulation.tcp import Framing, TcpModel

WORKLOADS = ((6, 200, 5), (32, 10, 31), (64, 5, 63), (256, 5, 8), (1000, 5, 8))
"""Workers, rounds, peers of each."""
SHORT = ((6, 20, 5),)
SIZE = 5e6
SIMGRID_SOURCE = Path(__file__).with_name("simgrid_mesh.cpp")
# Acknowledgements apart, of which each model has its own. Without its factors, SimGrid shares links as we do.
LV08_FLAGS = ("--cfg=network/crosstraffic:0",)
FAIR_FLAGS = (
    *LV08_FLAGS,
    "--cfg=network/bandwidth-factor:1",
    "--cfg=network/latency-factor:1",
    "--cfg=network/weight-S:0",
    "--cfg=network/TCP-gamma:0",
)
QUIET = ("--log=root.thres:warning",)
FAIR = TcpModel(Framing(1.0, 0.0))
LV08 = replace(TcpModel.of(Network(tcp=Lv08())), framing=Framing(1 / Lv08().bandwidth_factor, 0.0))


class Bulk(NamedTuple):
    """A placeholder for a message's body."""

    channel: Channel = Channel.DATA


class Parcel(NamedTuple):
    """A placeholder for a message of that size."""

    sender: int
    size: float
    round: int
    body: Bulk = Bulk()


class Mesh(Listener):
    """The workload in our engine."""

    def __init__(self, workers: int, rounds: int, degree: int, tcp: TcpModel = FAIR) -> None:
        self.workers, self.rounds, self.degree = workers, rounds, degree
        self.event_queue = EventQueue()
        cluster = from_data(
            {
                "name": "mesh",
                "duration": "1 s",
                "workload": {"dataset": "digits"},
                "cluster": {
                    "clouds": [
                        {"name": "star", "workers": [{"count": workers, "nic": "50 Mbps"}], "lan": {"rtt": "40 ms"}}
                    ]
                },
                "system": "dlion",
            }
        ).cluster
        self.transport = Transport(
            self.event_queue,
            Routing(cluster),
            self,
            tcp=tcp,
        )
        self.round = [0] * workers
        # Undelivered parcels to or from each worker by round, as a peer may be a round ahead.
        self.missing = [[2 * degree] * rounds for _ in range(workers)]

    def run(self) -> tuple[float, float]:
        """Virtual end and wall seconds."""
        for worker in range(self.workers):
            self._compute(worker)
        gc.collect()
        gc.freeze()  # as a simulation does
        began = time.perf_counter()
        while self.event_queue.next_time < math.inf:
            self.event_queue.step()
        wall = time.perf_counter() - began
        gc.unfreeze()
        return self.event_queue.now, wall

    def _compute(self, worker: int) -> None:
        seconds = 0.1 * (1 + (worker * 37 % 11) / 3)
        self.event_queue.after(seconds, partial(self._send, worker))

    def _send(self, worker: int) -> None:
        for k in range(self.degree):
            peer = (worker + 1 + k) % self.workers
            scale = 0.5 + ((worker * 7919 + peer * 104729 + self.round[worker] * 31) % 1000) / 1000
            parcel = Parcel(worker, int(SIZE * scale), self.round[worker])
            self.transport.send(peer, cast(Message, parcel))
        self._advance(worker)

    def delivered(self, receiver: int, message: Message) -> None:
        parcel = cast(Parcel, message)
        for worker in (parcel.sender, receiver):
            self.missing[worker][parcel.round] -= 1
            self._advance(worker)

    def _advance(self, worker: int) -> None:
        if self.round[worker] < self.rounds and not self.missing[worker][self.round[worker]]:
            self.round[worker] += 1
            if self.round[worker] < self.rounds:
                self._compute(worker)


class SimGrid:
    """The workload in SimGrid."""

    def __init__(self, folder: Path, flags: Sequence[str]) -> None:
        self._flags = flags
        self._program = folder / "mesh"
        subprocess.run(
            ["g++", "-O2", "-std=c++17", str(SIMGRID_SOURCE), "-o", str(self._program), "-lsimgrid"], check=True
        )

    def run(self, workers: int, rounds: int, degree: int) -> tuple[float, float]:
        """Virtual end and wall seconds."""
        command = [str(self._program), str(workers), str(rounds), str(SIZE), str(degree), *self._flags, *QUIET]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        virtual, wall = re.search(r"virtual=([\d.]+)s wall=([\d.]+)s", output).groups()  # type: ignore[union-attr]
        return float(virtual), float(wall)


def main() -> None:
    """Run each workload `--repeat` times, alternating with SimGrid."""
    parser = options(__doc__, repeat=3)
    parser.add_argument("--lv08", action="store_true", help="with SimGrid's factors and windows")
    arguments = parser.parse_args()
    tcp, flags = (LV08, LV08_FLAGS) if arguments.lv08 else (FAIR, FAIR_FLAGS)
    repeat, workloads = (1, SHORT) if arguments.short else (arguments.repeat, WORKLOADS)
    Mesh(4, 1, 3).run()  # compiles
    columns = ("workers", "peers", "flows", "dlion_sim", "SimGrid", "ratio", "virtual end", "difference")
    shown = table("network: flows per wall second", *columns, names=0)
    with tempfile.TemporaryDirectory() as folder:
        simgrid = SimGrid(Path(folder), flags) if _has_simgrid() else None
        for workers, rounds, degree in workloads:
            ours, theirs = [], []
            for _ in range(repeat):
                end, wall = Mesh(workers, rounds, degree, tcp).run()
                ours.append(wall)
                if simgrid:
                    their_end, wall = simgrid.run(workers, rounds, degree)
                    theirs.append(wall)
            flows = workers * rounds * degree
            shown.add_row(
                str(workers),
                str(degree),
                str(flows),
                f"{flows / sorted(ours)[repeat // 2]:,.0f}",
                f"{flows / sorted(theirs)[repeat // 2]:,.0f}" if simgrid else "not installed",
                ratio(theirs, ours) if simgrid else "-",
                f"{end:.3f} s",
                f"{abs(end / their_end - 1):.4%}" if simgrid else "-",
            )
    Console().print(shown)


def _has_simgrid() -> bool:
    return bool(shutil.which("g++")) and any(
        (Path(prefix) / "simgrid/s4u.hpp").exists() for prefix in ("/usr/include", "/usr/local/include")
    )


if __name__ == "__main__":
    main()
