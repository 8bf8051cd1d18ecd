"""Environments drawn at random, in which systems are compared that nobody has adjusted to them.

Environment `number` of a seed is always the same, however many are drawn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dlion_sim.streams import stream

DURATION = 300
"""Seconds."""
WORKERS = (4, 10)
CLOUDS = (3, 6)
CORES = (4, 24)
NIC = (50, 1000)
"""Mbps."""
PATH = (10, 500)
"""Mbps, of a path between two clouds."""
RTT = (10, 250)
"""Milliseconds."""
ALPHA = (0.1, 1.0)
"""Of the Dirichlet distribution of classes over workers, where data are skewed."""
ALIKE_MACHINES = 0.25
"""Part of the environments whose machines are all alike."""
SKEWED = 0.5
"""Part of the environments whose workers hold different classes."""
STEPS = 0.3
"""Part of the paths whose bandwidth changes once, in the second or third quarter of the run."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the environments, each to a file of its number."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drawn", description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="How many; by default 20.")
    parser.add_argument("--seed", type=int, default=0, help="Of all that is drawn; by default 0.")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="Where the files go.")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    for number in range(options.count):
        data = environment(number, options.seed)
        text = yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=120)
        (options.output / f"{data['name']}.yaml").write_text(f"# Drawn at random, by seed {options.seed}.\n{text}")
    print(f"{options.count} environments in {options.output}", file=sys.stderr)


def environment(number: int, seed: int) -> dict[str, Any]:
    """A scenario's data: machines, links and the partition of the data are drawn, the rest is Hetero SYS B's."""
    rng = stream(seed, "environment", number)
    workers, skewed = int(rng.integers(*WORKERS, endpoint=True)), rng.random() < SKEWED
    count = int(rng.integers(CLOUDS[0], min(CLOUDS[1], workers), endpoint=True))
    places = [*range(count), *(int(place) for place in rng.integers(count, size=workers - count))]
    alike = _log(rng, CORES) if rng.random() < ALIKE_MACHINES else None
    clouds = [
        {
            "name": f"cloud{place}",
            "workers": [
                {"compute": f"{alike or _log(rng, CORES)} cores", "nic": f"{_log(rng, NIC)} Mbps"}
                for _ in range(places.count(place))
            ],
        }
        for place in range(count)
    ]
    paths = [
        {
            "between": [f"cloud{a}", f"cloud{b}"],
            "bandwidth": _bandwidth(rng),
            "rtt": f"{rng.integers(*RTT, endpoint=True)} ms",
        }
        for a, b in combinations(range(count), 2)
    ]
    alpha = round(float(np.exp(rng.uniform(*np.log(ALPHA)))), 2)
    return {
        "name": f"drawn{number:02}",
        "description": f"{workers} workers in {count} clouds, data {f'skewed, alpha {alpha}' if skewed else 'alike'}",
        "duration": f"{DURATION} s",
        "workload": {
            "dataset": "cifar10",
            "model": "cipher",
            "optimizer": {"kind": "sgd", "learning_rate": 0.05},
            "batch_size": 32,
            "partition": {"kind": "dirichlet", "alpha": alpha} if skewed else "iid",
            "evaluate_every": "50 s",
        },
        "cluster": {"clouds": clouds, "wan": {"paths": paths}},
        "system": "dlion_sparse",
    }


def _bandwidth(rng: np.random.Generator) -> str | dict[str, Any]:
    before, after = (f"{_log(rng, PATH)} Mbps" for _ in range(2))
    if rng.random() >= STEPS:
        return before
    return {"steps": {"0 s": before, f"{rng.integers(DURATION // 4, 3 * DURATION // 4, endpoint=True)} s": after}}


def _log(rng: np.random.Generator, bounds: tuple[float, float]) -> int:
    """A whole number whose logarithm is uniform: as many from 10 to 20 as from 20 to 40."""
    return round(float(np.exp(rng.uniform(*np.log(bounds)))))


if __name__ == "__main__":
    main()
