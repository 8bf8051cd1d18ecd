"""A live run whose nodes are killed in turn: memory and descriptors over an hour, and what becomes of kills.

Eight nodes train by DLion a network of 4.5 MB over loopback. Every minute one of six is killed, and is back after 20 s;
the other two live as long as the run. Every ten seconds the memory (RSS) and descriptors of all processes are read.
Beside it stands a simulation of the same scenario.

`python -m benchmarks.endurance --output results/endurance` takes an hour, and writes a page and a CSV of the readings.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from rich.console import Console
from torch import nn

from benchmarks.measuring import markdown, options, table, write_page
from dlion_sim.learning.datasets import Dataset
from dlion_sim.results import Run
from dlion_sim.scenario import dump, from_data
from dlion_sim.simulation.simulate import simulate

NODES, SHORT_NODES = 8, 4
LASTING = 2
"""The first nodes, which are never killed."""
HIDDEN = 1024
SECONDS, SHORT = 3600, 16
BETWEEN, SHORT_BETWEEN = 60, 6
"""Seconds from one kill to the next."""
AWAY = 1 / 3
"""The part of that time for which a node is away."""
EVERY, SHORT_EVERY = 10, 1
"""Seconds from one reading to the next."""
WARM_UP = 0.1
"""The part of the run before the first reading that counts: by then all code has run."""
EVENTS = ("down", "lost", "up", "found", "joined")
MEMORY = ("", "after a tenth", "after a half", "at the end")
ROOT = Path(__file__).parents[1]


def network(dataset: Dataset) -> nn.Module:
    """A perceptron with 1.1 million parameters."""
    layers = [nn.Flatten(), nn.Linear(math.prod(dataset.input_shape), HIDDEN), nn.ReLU()]
    layers += [nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, dataset.task.outputs)]
    return nn.Sequential(*layers)


def scenario(nodes: int, seconds: int, between: int) -> dict[str, object]:
    """The run's scenario; the nodes that may be killed take turns."""
    down: dict[str, list[list[str]]] = {}
    for number, begin in enumerate(range(between, seconds - between // 2, between)):
        rank = LASTING + number % (nodes - LASTING)
        down.setdefault(f"here/{rank}", []).append([f"{begin} s", f"{begin + AWAY * between} s"])
    workers = {"count": nodes, "compute": "8 cores", "nic": "10 Gbps"}
    return {
        "name": "endurance",
        "duration": f"{seconds} s",
        "modules": str(ROOT),
        "workload": {
            "dataset": "digits",
            "model": "benchmarks.endurance:network",
            "batch_size": 16,
            "compute_time": {"alpha": "1 s", "beta": "10 ms"},
            "evaluate_every": f"{between} s",
        },
        "cluster": {"clouds": [{"name": "here", "workers": [workers]}]},
        "system": {"name": "dlion", "batching": "fixed"},
        "availability": {"workers": {worker: {"down": times} for worker, times in down.items()}},
    }


@dataclass(frozen=True)
class Reading:
    """What a process had at a time, in seconds since the run's command began."""

    seconds: float
    process: str
    """Its rank, or "dlion live"."""
    pid: int
    resident: float
    """MB."""
    descriptors: int
    threads: int


def readings_of(parent: int, seconds: float) -> Iterator[Reading]:
    """Of a process and all its children; those that are just ending are left out."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
            if int(folder.name) != parent and int(status["PPid"]) != parent:
                continue
            words = (folder / "cmdline").read_text().split("\0")
            ranks = [word.removeprefix("--rank=") for word in words if word.startswith("--rank=")]
            resident = float(status["VmRSS"].split()[0]) / 1e3
            descriptors = len(list((folder / "fd").iterdir()))
        except (OSError, KeyError):
            continue
        if not resident:  # Between its fork and its program.
            continue
        of = ranks[0] if ranks else "dlion live"
        yield Reading(round(seconds, 1), of, int(folder.name), resident, descriptors, int(status["Threads"]))


def live(file: Path, folder: Path, every: float) -> tuple[Run, pd.DataFrame]:
    """Make the live run; it, and all readings."""
    readings: list[Reading] = []
    command = [sys.executable, "-m", "dlion_sim", "live", str(file), "--output", str(folder), "--quiet"]
    began = time.monotonic()
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            readings += readings_of(process.pid, time.monotonic() - began)
            time.sleep(every)
    if process.returncode:
        raise SystemExit(process.returncode)
    return Run.open(folder), pd.DataFrame(readings)


def lasting(readings: pd.DataFrame, seconds: float) -> list[tuple[str, ...]]:
    """What each lasting process had after warming up, in the middle and at the end of the run."""
    rows = []
    for process in ("dlion live", *map(str, range(LASTING))):
        of = readings[readings["process"] == process]
        cells = []
        for part in (WARM_UP, 0.5, 0.95):
            row = of.iloc[(of["seconds"] - part * seconds).abs().argmin()]
            cells.append(f"{row['resident']:.0f} MB, {row['descriptors']}, {row['threads']}")
        rows.append((f"node {process}" if process.isdigit() else process, *cells))
    return rows


def accounts(run: Run) -> dict[str, str]:
    """What became of the kills."""
    told = run.membership()["what"].value_counts()
    metrics = run.metrics()
    availability = run.outcome["availability"]
    return {
        **{f"rows: {event}": str(told.get(event, 0)) for event in EVENTS},
        "gradients cut": str((metrics["kind"] == "cut").sum()),
        "gradients cut, s": f"{availability['lost_seconds']:.1f}",
        "from an end to a detection, mean s": f"{availability['to_notice']['mean']:.3f}",
        "from a return to joining, mean s": f"{availability['to_join']['mean']:.2f}",
        "iterations": str(sum(run.outcome["iterations"]["per_worker"])),
        "mean accuracy (%)": f"{100 * run.outcome['accuracy']['mean']:.1f}",
    }


def main() -> None:
    """Run it, and the simulation."""
    parser = options(__doc__, page=True)
    arguments = parser.parse_args()
    nodes, seconds, between, every = NODES, SECONDS, BETWEEN, EVERY
    if arguments.short:
        nodes, seconds, between, every = SHORT_NODES, SHORT, SHORT_BETWEEN, SHORT_EVERY
    with tempfile.TemporaryDirectory() as place:
        given = from_data(scenario(nodes, seconds, between))
        file = Path(place) / "endurance.yaml"
        file.write_text(dump(given))
        run, readings = live(file, Path(place) / "live", every)
        counted = {"live": accounts(run)}
        counted["simulated"] = accounts(simulate(given, Path(place) / "simulated", checkpoint_every=None))
    memory = lasting(readings, seconds)
    events = [(name, *(of[name] for of in counted.values())) for name in counted["live"]]
    console = Console()
    for title, headings, rows in (
        ("memory (RSS), descriptors, threads", MEMORY, memory),
        ("what became of kills", ("", *counted), events),
    ):
        shown = table(title, *headings)
        for cells in rows:
            shown.add_row(*cells)
        console.print(shown)
    if arguments.output:
        about = (__doc__ or "").strip().split("\n\n")
        paragraphs = [*about[1:], "Memory (RSS), descriptors and threads of the processes that last:"]
        paragraphs += [markdown(MEMORY, memory), "What became of kills:"]
        write_page(arguments.output, "An hour of kills", paragraphs, ("", *counted), events)
        readings.to_csv(arguments.output / "readings.csv", index=False, float_format="%.1f")


if __name__ == "__main__":
    main()
