"""Processor time of simulations by system, relative to DiLoCo and to Baseline, per iteration of a worker.

Scenario `quickstart`: six workers learn the digits. Systems with a period exchange every 10 iterations: a worker of
DiLoCo then sends half a message an iteration, one of Baseline five. Begin and end of runs, and evaluations, are left
out. Systems alternate in one process; ratios are of the same turn.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from rich.console import Console

from benchmarks.measuring import options, ratio, table
from dlion_sim.scenario import find, load
from dlion_sim.simulation.simulate import simulate

PERIOD = {"exchange": {"period": 10}}
SYSTEMS: Mapping[str, dict[str, Any]] = {
    "diloco": PERIOD,
    "baseline": {},
    "local_sgd": PERIOD,
    "streaming_diloco": {"exchange": {"period": 10, "delay": 2}},
    "sparse_loco": PERIOD,
    "noloco": PERIOD,
    "moshpit": PERIOD,
    "async_local_sgd": PERIOD,
    "decoupled_diloco": {"exchange": {"period": 10, "delay": 2}},
    "halos": PERIOD,
    "sgp": {},
    "gossipgrad": {},
    "sparta": {},
    "demo": {},
    "power_sgd": {},
}
"""The systems, with their parameters where these are not the defaults."""
REFERENCES = ("diloco", "baseline")
SHORT = ("demo",)
TURNS = 7


class Cost(NamedTuple):
    """Of a worker's iteration."""

    seconds: float
    """Of the processor."""
    messages: float
    """Sent."""


def cost(system: str, iterations: int) -> Cost:
    """The cost of a system's iterations, so many of each worker."""
    times: list[float] = []

    def noted() -> bool:
        """Called after every event of the simulation."""
        times[1:] = [time.process_time()]
        return False

    scenario = load(
        find("quickstart"),
        [
            f"system={json.dumps({'name': system, **SYSTEMS[system]})}",
            f"iterations={iterations}",
            "duration=100 h",
            "workload.evaluate_every=100 h",
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        run = simulate(scenario, Path(folder) / "run", checkpoint_every=None, interrupted=noted)
        done = len(run.iterations())
        return Cost((times[1] - times[0]) / done, len(run.transfers()) / done)


def main() -> None:
    """Measure every system in turns."""
    parser = options(__doc__, repeat=TURNS)
    parser.add_argument("--iterations", type=int, default=200, help="of each worker, in each run")
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS, metavar="NAME")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    systems = SHORT if arguments.short else arguments.systems
    turns, iterations = (1, 10) if arguments.short else (arguments.repeat, arguments.iterations)
    costs: dict[str, list[Cost]] = {}
    for _ in range(turns):
        for system in dict.fromkeys([*REFERENCES, *systems]):
            costs.setdefault(system, []).append(cost(system, iterations))
    seconds = {system: [each.seconds for each in found] for system, found in costs.items()}
    rows = [
        [
            system,
            f"{found[0].messages:.1f}",
            f"{1e3 * median(seconds[system]):.2f}",
            *(ratio(seconds[system], seconds[reference]) for reference in REFERENCES),
        ]
        for system, found in costs.items()
    ]
    columns = ("", "messages", "ms", *(f"times {reference}" for reference in REFERENCES))
    shown = table("systems: per worker-iteration", *columns)
    for cells in rows:
        shown.add_row(*cells)
    Console().print(shown)


if __name__ == "__main__":
    main()
