"""Every system under churn: outages of a worker, a link or a cloud; and the cost of simulating churn.

Four workers in two clouds learn the digits for a minute, with the event of the heading. A cell has the iterations of
the slowest member at the end, or why the run ended. The table and a CSV of all runs are written to `--output`.

The cost is CPU time per iteration of a worker: many workers mix parameters with eight neighbours each (D-PSGD) and
compute for about a second, with a loss or a return every second, compared with none. Both alternate in one process.
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

from benchmarks.measuring import markdown, options, ratio, table
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.results import Run
from dlion_sim.scenario import from_data
from dlion_sim.simulation.simulate import simulate

EVENTS: Mapping[str, dict[str, Any]] = {
    "none": {},
    "crash": {"workers": {"west/1": {"down": [["20 s", None]]}}},
    "notice": {"workers": {"west/1": {"down": [["20 s", "30 s"]], "kind": "preemption", "notice": "10 s"}}},
    "rejoin": {"workers": {"west/1": {"down": [["20 s", "30 s"]]}}},
    "new worker": {"workers": {"west/1": {"down": [["0 s", "20 s"]]}}},
    "link, 20 s": {"links": {"east-west": {"down": [["20 s", "40 s"]]}}, "silence": "10 s"},
    "cloud": {"clouds": {"west": {"down": [["20 s", "30 s"]]}}},
}
"""The events, as `availability`."""
SHORT = 0.05
"""The factor of all times with --short."""
CLUSTER = {
    "clouds": [
        {"name": "east", "workers": [{"count": 2, "compute": "24 cores", "nic": "50 Mbps"}]},
        {"name": "west", "workers": [{"count": 2, "compute": "12 cores", "nic": "20 Mbps"}]},
    ],
    "wan": {"bandwidth": "40 Mbps", "rtt": "60 ms"},
}
"""The cluster of all systems."""
TURNS = 3
PAGE = """# Systems under churn

Four workers in two micro-clouds learn the digits for 60 s by each system, with one of these events:

- `crash`: a worker crashes at 20 s, for good;
- `notice`: the same worker is preempted at 20 s with a notice at 10 s, leaves at once, and returns at 30 s;
- `rejoin`: it crashes at 20 s, and returns at 30 s;
- `new worker`: it joins at 20 s, for the first time;
- `link, 20 s`: the path between the micro-clouds is down from 20 to 40 s; after 10 s both sides detect a loss;
- `cloud`: both workers of a micro-cloud crash at 20 s, and return at 30 s.

A cell has the iterations of the slowest member at the end (of FedAvg the rounds of its server), or why the run ended. A
joining worker continues from the iterations of its sponsor. Systems have their defaults, but DiLoCo exchanges every 10
iterations. [Every run](churn.csv) has accuracies (fractions), seconds of lost work, and mean seconds of failure
detection and of joining.

`python -m benchmarks.churn --output results/churn` writes this page.
"""


def outcome(system: str, event: str, part: float) -> dict[str, object]:
    """The results of a system with an event, with all times multiplied by `part`."""
    given = {"name": system, "exchange": {"period": 10}} if system == "diloco" else system
    with _simulated(
        workload={"compute_time": {"alpha": f"{100 * part} ms", "beta": "10 ms"}, "evaluate_every": "60 s"},
        duration=f"{60 * part} s",
        cluster=CLUSTER,
        system=given,
        availability=_scaled(EVENTS[event], part),
    ) as run:
        availability, ended = run.outcome.get("availability", {}), run.manifest["status"] == "failed"
        last = run.evaluations().query("virtual_time == virtual_time.max()")  # of the members, or of the server
        return {
            "system": system,
            "event": event,
            "ended by": run.outcome["stopped_by"] if ended else "",
            "iterations": int(last["iteration"].min()),
            "accuracy": run.outcome["accuracy"]["mean"],
            "iterations by worker": " ".join(map(str, run.outcome["iterations"]["per_worker"])),
            "work lost s": availability.get("lost_seconds", 0.0),
            "fetched bytes": availability.get("state_bytes", 0),
            **{
                f"{name.replace('_', ' ')} s": availability.get(name, {}).get("mean")
                for name in ("to_notice", "to_join")
            },
        }


def cells(rows: Sequence[Mapping[str, object]]) -> dict[str, list[str]]:
    """The cells of each system."""
    found: dict[str, list[str]] = {}
    for row in rows:
        # The alternatives after the reason are in the CSV file.
        reason, _, _ = str(row["ended by"]).partition(",")
        found.setdefault(str(row["system"]), []).append(reason or str(row["iterations"]))
    return found


def write(folder: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write the table in Markdown, and a CSV of all runs."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = markdown(["", *EVENTS], [[system, *each] for system, each in cells(rows).items()])
    (folder / "README.md").write_text(f"{PAGE}\n{lines}\n")
    pd.DataFrame(rows).to_csv(folder / "churn.csv", index=False, float_format="%.4g")


def cost(workers: int, iterations: int, *, churning: bool) -> float:
    """CPU seconds per iteration of a worker, of this many."""
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
    """A run in a temporary folder."""
    data = {"name": "churn", "workload": {"dataset": "digits", "model": "mlp", "batch_size": 16, **workload}, **keys}
    with tempfile.TemporaryDirectory() as folder:
        yield simulate(from_data(data), Path(folder) / "run", checkpoint_every=None)


def _scaled(value: Any, part: float) -> Any:
    """With all times in it multiplied by `part`."""
    match value:
        case dict():
            return {key: _scaled(each, part) for key, each in value.items()}
        case list():
            return [_scaled(each, part) for each in value]
        case str() if value.endswith(" s"):
            return f"{part * float(value.removesuffix(' s'))} s"
        case _:
            return value


def main() -> None:
    """Run every system with every event, and measure."""
    parser = options(__doc__)
    parser.add_argument("--output", type=Path, help="folder for README.md and churn.csv")
    arguments = parser.parse_args()
    part = SHORT if arguments.short else 1.0
    systems = ["dpsgd", "fedavg", "ring_allreduce"] if arguments.short else sorted(SYSTEMS)
    caption = None if arguments.output else measured_cost(short=arguments.short)
    shown = table("systems under churn", "", *EVENTS, caption=caption)
    rows = [outcome(system, event, part) for system in systems for event in EVENTS]
    for system, each in cells(rows).items():
        shown.add_row(system, *each)
    Console().print(shown)
    if arguments.output:
        write(arguments.output, rows)


def measured_cost(*, short: bool) -> str:
    """The cost of a loss or return every second, as text."""
    workers, iterations = (64, 3) if short else (1024, 20)
    with_churn, without = [], []
    for turn in range(1 if short else TURNS + 1):
        measured = [cost(workers, iterations, churning=churning) for churning in (True, False)]
        if turn or short:  # the first one imports and compiles
            with_churn.append(measured[0])
            without.append(measured[1])
    return f"{workers} workers, a loss or return a second: {ratio(with_churn, without)} times the CPU time"


if __name__ == "__main__":
    main()
