"""Seconds an iteration: calibrated, simulated with what was calibrated, and of a real worker.

The real one is a live node without pacing or peers, on one core as all nodes are. Calibrating and running take turns,
so that whatever else the machine does at a time befalls both; nothing else should run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.measuring import options
from dlion_sim.calibration import calibrate
from dlion_sim.live import run_locally
from dlion_sim.scenario import from_data
from dlion_sim.simulation import simulate

WORKLOADS: Mapping[str, dict[str, Any]] = {
    "mlp": {"dataset": "digits", "model": "mlp", "batch_size": 32},
    "cipher": {"dataset": "cifar10", "model": "cipher", "batch_size": 32},
    "gpt": {"dataset": "shakespeare", "model": "gpt", "batch_size": 8},
}
SHORT = {name: {**workload, "dataset": "digits"} for name, workload in WORKLOADS.items() if name != "gpt"}
SIMULATED = 20
"""Iterations: each takes as long as any other."""
SECONDS, FEWEST = 10.0, 20
"""How long a real run is about, and how many iterations at least; the first few do not count."""
WARM_UP = 5


class Turn(NamedTuple):
    """Seconds an iteration."""

    calibrated: float
    """What the calibrated line says."""
    simulated: float
    real: float
    """The median."""
    mean: float


def turn(workload: dict[str, Any], seconds: float) -> Turn:
    """Calibrate, simulate, and run for real."""
    data: dict[str, Any] = {
        "name": "calibration",
        "iterations": SIMULATED,
        "workload": {"evaluate_every": "1 h", **workload},
        "cluster": {"clouds": [{"name": "here", "workers": [{}]}]},
        "system": "baseline",
    }
    found = calibrate(from_data(data), "cpu")
    calibrated = found.fit.seconds(workload["batch_size"])
    block = {**data, **found.block, "workload": {**data["workload"], **found.block["workload"]}}
    iterations = max(FEWEST, round(seconds / calibrated)) + WARM_UP
    with tempfile.TemporaryDirectory() as folder:
        simulated = simulate(from_data(block), Path(folder, "simulated"), device="cpu")
        assert simulated.summary
        real = run_locally(
            from_data({**data, "iterations": iterations}), Path(folder, "real"), device="cpu", paced=False
        )
        times = np.diff(real.iterations()["virtual_time"])[WARM_UP:]
    return Turn(
        calibrated, simulated.summary["virtual_seconds"] / SIMULATED, float(np.median(times)), float(times.mean())
    )


def main() -> None:
    """Take turns."""
    parser = options(__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    workloads, repeat, seconds = (SHORT, 1, 0.1) if arguments.short else (WORKLOADS, arguments.repeat, SECONDS)
    table = Table(title="calibration: ms an iteration, medians over the turns")
    for column in ("", "calibrated", "simulated", "real", "real, mean", "simulated / real"):
        table.add_column(column, justify="right")
    for name, workload in workloads.items():
        turns = [turn(workload, seconds) for _ in range(repeat)]
        ratios = [each.simulated / each.real for each in turns]
        spread = f"{median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        table.add_row(name, *(f"{1e3 * median(column):.4g}" for column in zip(*turns, strict=True)), spread)
    Console().print(table)


if __name__ == "__main__":
    main()
