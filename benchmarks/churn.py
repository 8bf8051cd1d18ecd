"""What becomes of every system where workers come and go or a link breaks, and what it costs to simulate that.

Four workers in two clouds learn the digits for a minute, while one of them, a link or a cloud goes as the heading says.
In a cell stand the iterations that the slowest of those who are there has come to, or why the run was ended. The table
and a CSV of all runs go to `--output`.

The cost is CPU time for an iteration of a worker: of many that mix parameters with eight neighbours each (D-PSGD) and
compute for about a second, of whom one is lost or back every second, against the same without. Both are simulated in
turn, in one process.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
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
PAGE = """# Systems whose workers come and go

Four workers in two micro-clouds learn the digits for 60 s by each system, while somebody goes or something breaks:

- `crash`: a worker at 20 s, for good;
- `notice`: the same worker is told at 10 s that it goes at 20 s, leaves at once, and is back at 30 s;
- `rejoin`: it crashes at 20 s, and is back at 30 s;
- `new worker`: it comes at 20 s, for the first time;
- `link, 20 s`: nothing goes between the micro-clouds from 20 to 40 s, and after 10 s both take each other for lost;
- `cloud`: both workers of a micro-cloud crash at 20 s, and are back at 30 s.

In a cell stand the iterations that the slowest of those who are there in the end has come to, or why the run was ended.
Who is new, or comes back, goes on from the iterations of the one that it has its state from. Systems are as they are by
default, but DiLoCo exchanges every 10 iterations. [Every run](churn.csv), with accuracies of 0 to 1, seconds of work
that were lost, and means of seconds until a loss was noticed and until who came took part.

`python -m benchmarks.churn --output results/churn` writes this page.
"""


def outcome(system: str, way: str, part: float) -> dict[str, object]:
    """What becomes of a system as somebody goes, with all times multiplied by `part`."""
    given = {"name": system, "exchange": {"period": 10}} if system == "diloco" else system
    with _simulated(
        workload={"compute_time": {"alpha": f"{100 * part} ms", "beta": "10 ms"}, "evaluate_every": "60 s"},
        duration=f"{60 * part} s",
        cluster=CLUSTER,
        system=given,
        availability=_scaled(WAYS[way], part),
    ) as run:
        told, ended = run.outcome.get("availability", {}), run.manifest["status"] == "failed"
        members = run.evaluations().query("virtual_time == virtual_time.max()")["worker"]
        done = run.outcome["iterations"]["per_worker"]
        return {
            "system": system,
            "way": way,
            "ended by": run.outcome["stopped_by"] if ended else "",
            "iterations": min(done[worker] for worker in members),
            "accuracy": run.outcome["accuracy"]["mean"],
            "iterations by worker": " ".join(map(str, done)),
            "work lost s": told.get("lost_seconds", 0.0),
            "fetched bytes": told.get("state_bytes", 0),
            **{f"{name.replace('_', ' ')} s": told.get(name, {}).get("mean") for name in ("to_notice", "to_join")},
        }


def cells(rows: Sequence[Mapping[str, object]]) -> dict[str, list[str]]:
    """By system what stands in the columns of the ways."""
    found: dict[str, list[str]] = {}
    for row in rows:
        # What could go on instead, which follows the reason, stands in the CSV file.
        reason, _, _ = str(row["ended by"]).partition(",")
        found.setdefault(str(row["system"]), []).append(reason or str(row["iterations"]))
    return found


def write(folder: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write the table in Markdown, and a CSV of all runs."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [["", *WAYS], ["---"] * (1 + len(WAYS)), *([system, *each] for system, each in cells(rows).items())]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    (folder / "README.md").write_text(f"{PAGE}\n{table}")
    pd.DataFrame(rows).to_csv(folder / "churn.csv", index=False, float_format="%.4g")


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
    parser = options(__doc__)
    parser.add_argument("--output", type=Path, help="folder for README.md and churn.csv")
    arguments = parser.parse_args()
    part = SHORT if arguments.short else 1.0
    systems = ["dpsgd", "ring_allreduce"] if arguments.short else sorted(SYSTEMS)
    caption = None if arguments.output else measured_cost(short=arguments.short)
    table = Table(title="what becomes of systems whose workers come and go", caption=caption)
    for column in ("", *WAYS):
        table.add_column(column, justify="right", overflow="fold")
    rows = [outcome(system, way, part) for system in systems for way in WAYS]
    for system, each in cells(rows).items():
        table.add_row(system, *each)
    Console().print(table)
    if arguments.output:
        write(arguments.output, rows)


def measured_cost(*, short: bool) -> str:
    """What it costs that somebody goes or comes every second, in words."""
    workers, iterations = (64, 3) if short else (1024, 20)
    with_churn, without = [], []
    for turn in range(1 if short else TURNS + 1):
        measured = [cost(workers, iterations, churning=churning) for churning in (True, False)]
        if turn or short:  # the first one loads what is loaded once
            with_churn.append(measured[0])
            without.append(measured[1])
    return f"{workers} workers, a loss or return a second: {ratio(with_churn, without)} times the CPU time"


if __name__ == "__main__":
    main()
