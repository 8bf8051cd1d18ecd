"""What becomes of every system where workers come and go or a link breaks, and what it costs to simulate that.

Four workers in two clouds learn the digits for a minute, while one of them, a link or a cloud goes as the heading says.
In a cell stand the iterations that the slowest of those who are there has come to, or why the run was ended.

The cost is CPU time for an iteration of a worker: of many that mix parameters with eight neighbours each (D-PSGD) and
compute for about a second, of whom one is lost or back every second, against the same without. Both are simulated in
turn, in one process.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import options, ratio
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.results import Run
from dlion_sim.scenario import from_data
from dlion_sim.simulation.simulate import simulate

WAYS: Mapping[str, dict[str, Any]] = {
    "nobody": {},
    "crash": {"workers": {"west/1": {"down": [["20 s", None]]}}},
    "notice": {"workers": {"west/1": {"down": [["20 s", "30 s"]], "kind": "preemption", "notice": "10 s"}}},
    "rejoin": {"workers": {"west/1": {"down": [["20 s", "30 s"]]}}},
    "new worker": {"workers": {"west/1": {"down": [["0 s", "20 s"]]}}},
    "link, 20 s": {"links": {"east-west": {"down": [["20 s", "40 s"]]}}, "silence": "10 s"},
    "cloud": {"clouds": {"west": {"down": [["20 s", "30 s"]]}}},
}
"""How somebody goes, or something breaks."""
SHORT = 0.05
"""So much of these times suffices to show that it works."""
CLUSTER = {
    "clouds": [
        {"name": "east", "workers": [{"count": 2, "compute": "24 cores", "nic": "50 Mbps"}]},
        {"name": "west", "workers": [{"count": 2, "compute": "12 cores", "nic": "20 Mbps"}]},
    ],
    "wan": {"bandwidth": "40 Mbps", "rtt": "60 ms"},
}
"""Of the runs of every system."""
TURNS = 3


def outcome(system: str, availability: dict[str, Any], part: float) -> str:
    """What became of a system, with all times multiplied by `part`."""
    given = {"name": system, "exchange": {"period": 10}} if system == "diloco" else system
    with _simulated(
        workload={"compute_time": {"alpha": f"{100 * part} ms", "beta": "10 ms"}, "evaluate_every": "60 s"},
        duration=f"{60 * part} s",
        cluster=CLUSTER,
        system=given,
        availability=_scaled(availability, part),
    ) as run:
        if run.manifest["status"] == "failed":
            return str(run.outcome["stopped_by"])
        members = run.evaluations().query("virtual_time == virtual_time.max()")["worker"]
        done = run.outcome["iterations"]["per_worker"]
        return str(min(done[worker] for worker in members))


def cost(workers: int, iterations: int, *, churning: bool) -> float:
    """CPU seconds of an iteration of one of so many workers."""
    down = {f"lab/{each}": {"down": [[f"{2 * each + 1} s", f"{2 * each + 2} s"]]} for each in range(workers)}
    began = time.process_time()
    with _simulated(
        workload={"compute_time": {"alpha": "1 s", "beta": "1 ms"}, "partition": "shared", "evaluate_every": "1000 s"},
        iterations=iterations,
        record_transfers=False,
        cluster={
            "clouds": [
                {
                    "name": "lab",
                    "workers": [{"count": workers, "compute": "4 cores", "nic": "100 Mbps"}],
                    "lan": {"rtt": "20 ms"},
                }
            ]
        },
        system={"name": "dpsgd", "topology": {"kind": "regular", "degree": 8}},
        **({"availability": {"workers": down}} if churning else {}),
    ) as run:
        return (time.process_time() - began) / len(run.iterations())


@contextmanager
def _simulated(*, workload: dict[str, Any], **keys: Any) -> Iterator[Run]:
    """A run, for as long as the block lasts."""
    data = {"name": "churn", "workload": {"dataset": "digits", "model": "mlp", "batch_size": 16, **workload}, **keys}
    with tempfile.TemporaryDirectory() as folder:
        yield simulate(from_data(data), Path(folder) / "run", checkpoint_every=None)


def _scaled(told: Any, part: float) -> Any:
    """With all times in it multiplied by `part`."""
    match told:
        case dict():
            return {key: _scaled(value, part) for key, value in told.items()}
        case list():
            return [_scaled(value, part) for value in told]
        case str() if told.endswith(" s"):
            return f"{part * float(told.removesuffix(' s'))} s"
        case _:
            return told


def main() -> None:
    """Run every system in every way, and measure."""
    arguments = options(__doc__).parse_args()
    part = SHORT if arguments.short else 1.0
    systems = ["dpsgd", "ring_allreduce"] if arguments.short else sorted(SYSTEMS)
    workers, iterations = (64, 3) if arguments.short else (1024, 20)
    with_churn, without = [], []
    for turn in range(1 if arguments.short else TURNS + 1):
        measured = [cost(workers, iterations, churning=churning) for churning in (True, False)]
        if turn or arguments.short:  # the first one loads what is loaded once
            with_churn.append(measured[0])
            without.append(measured[1])
    caption = f"{workers} workers, a loss or return a second: {ratio(with_churn, without)} times the CPU time"
    table = Table(title="what becomes of systems whose workers come and go", caption=caption)
    for column in ("", *WAYS):
        table.add_column(column, justify="right", overflow="fold")
    for system in systems:
        table.add_row(system, *(outcome(system, availability, part) for availability in WAYS.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
