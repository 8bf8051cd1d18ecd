"""Wall time and peak memory of whole simulations by the number of workers, on a sparse graph and all to all.

Real gradients of the digits MLP, batches of 32. On the graph workers mix parameters with eight neighbours (D-PSGD); all
to all, they send whole gradients (Baseline), n^2 messages per iteration. Each case runs in its own process.
The reference is the same system with 64 workers.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from benchmarks.measuring import options, table
from dlion_sim.scenario import from_data
from dlion_sim.simulation.simulate import simulate

REFERENCE = 64
CASES = {
    "graph of degree 8": [(16, 50), (64, 50), (256, 50), (1024, 50)],
    "all to all": [(8, 50), (64, 10), (256, 3), (1024, 1)],
}
"""Workers and iterations."""
SHORT = {kind: [(REFERENCE, 1)] for kind in CASES}
SYSTEMS = {
    "graph of degree 8": {"name": "dpsgd", "topology": {"kind": "regular", "degree": 8}},
    "all to all": "baseline",
}


def run(kind: str, workers: int, iterations: int) -> dict[str, float]:
    """One simulation: wall seconds from the scenario to the finished run folder, and the process's peak memory."""
    _simulate(kind, 16, 1)  # imports and compiles
    began = time.perf_counter()
    _simulate(kind, workers, iterations)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def _simulate(kind: str, workers: int, iterations: int) -> None:
    scenario = from_data(
        {
            "name": "scale",
            "iterations": iterations,
            "record_transfers": False,  # as by default with more than 64 workers
            "workload": {
                "dataset": "digits",
                "model": "mlp",
                "batch_size": 32,
                "partition": "shared",  # there are too few digits to partition
                "evaluate_every": "1000 s",
            },
            "cluster": {
                "clouds": [
                    {
                        "name": "lab",
                        "workers": [{"count": workers, "compute": "4 cores", "nic": "100 Mbps"}],
                        "lan": {"rtt": "20 ms"},
                    }
                ]
            },
            "system": SYSTEMS[kind],
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        simulate(scenario, Path(folder) / "run")


def in_process_of_its_own(kind: str, workers: int, iterations: int) -> dict[str, float]:
    """The result of `run`, in its own process."""
    command = [sys.executable, "-m", "benchmarks.scale", "--only", kind, str(workers), str(iterations)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    measured: dict[str, float] = json.loads(said.splitlines()[-1])
    return measured


def main() -> None:
    """Run every case."""
    parser = options(__doc__)
    parser.add_argument("--only", nargs=3, metavar=("KIND", "WORKERS", "ITERATIONS"), help="one case, as JSON")
    arguments = parser.parse_args()
    only = arguments.only
    if only:
        print(json.dumps(run(only[0], int(only[1]), int(only[2]))))
        return
    columns = ("", "workers", "iterations", "wall", "peak memory", "ms per worker-iteration", "times 64 workers'")
    shown = table("scale: digits MLP", *columns)
    for kind, sizes in (SHORT if arguments.short else CASES).items():
        measured = {size: in_process_of_its_own(kind, *size) for size in sizes}
        each = {size: result["seconds"] / (size[0] * size[1]) for size, result in measured.items()}
        reference = next(value for (workers, _), value in each.items() if workers == REFERENCE)
        for (workers, iterations), result in measured.items():
            shown.add_row(
                kind,
                str(workers),
                str(iterations),
                f"{result['seconds']:.1f} s",
                f"{result['gigabytes']:.2f} GB",
                f"{each[workers, iterations] * 1e3:.2f}",
                f"{each[workers, iterations] / reference:.2f}",
            )
    Console().print(shown)


if __name__ == "__main__":
    main()
