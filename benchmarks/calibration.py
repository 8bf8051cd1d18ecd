"""Seconds per iteration: calibrated, simulated with the calibrated scenario, and of a real worker.

The real worker is a live node without pacing or peers, on one core like all nodes. Calibration and runs alternate, so
that other load on the machine affects both.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from benchmarks.measuring import options, table
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
"""Iterations, which take equal times."""
SECONDS, FEWEST = 10.0, 20
"""The approximate duration of a real run, and its minimum number of iterations."""
WARM_UP = 5


class Turn(NamedTuple):
    """Seconds per iteration."""

    calibrated: float
    """By the fitted line."""
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
    """Measure each workload, several times."""
    arguments = options(__doc__, repeat=5).parse_args()
    workloads, repeat, seconds = (SHORT, 1, 0.1) if arguments.short else (WORKLOADS, arguments.repeat, SECONDS)
    columns = ("", "calibrated", "simulated", "real", "real, mean", "simulated / real")
    shown = table("calibration: ms per iteration, medians over the turns", *columns)
    for name, workload in workloads.items():
        turns = [turn(workload, seconds) for _ in range(repeat)]
        ratios = [each.simulated / each.real for each in turns]
        spread = f"{median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        shown.add_row(name, *(f"{1e3 * median(column):.4g}" for column in zip(*turns, strict=True)), spread)
    Console().print(shown)


if __name__ == "__main__":
    main()
