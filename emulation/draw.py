"""Scenarios drawn at random that Mininet can emulate, for holding the simulator against what nobody has chosen.

Scenario `number` of a seed is always the same, however many are drawn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from dlion_sim.emulation.shaping import LEAST_BURST_FRAMES, LEAST_FLOW_QUEUE_FRAMES
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.scenario import Scenario, dump, from_data
from dlion_sim.streams import stream

DURATION = 40
"""Seconds."""
WORKERS = (3, 6)
CLOUDS = (2, 4)
BANDWIDTH = (5.0, 40.0)
"""Mbps; of NICs in each direction and of WAN paths."""
STEPS = 0.1
"""The part of these whose capacity changes once, in the second or third quarter of the run."""
RTT = (0.0, 60.0)
"""Milliseconds."""
NOISE = (0.0, 0.15)
# With these, 32 samples take 150 to 700 ms, of which a real gradient and the rest of a node's work are about 10 ms: two
# cores carry six nodes.
CORES = (5, 12)
ALPHA = (20, 60)
"""Milliseconds."""
BETA = (50, 100)
"""Milliseconds."""
EVALUATE_EVERY = (1700, 2500)
"""Milliseconds, to one of them: hardly ever a multiple of an iteration, whose end must not fall onto a measurement."""
LINKS = {
    "queue": f"{LEAST_FLOW_QUEUE_FRAMES} packets",
    "burst": f"{LEAST_BURST_FRAMES} packets",
    "acknowledgements": 0.6,
}
"""As emulated; `dlion calibrate network` has counted 0.55 to 0.62 acknowledgements for each full frame."""
PER_MESSAGE = "2 ms"
"""Of a node's own time; `dlion calibrate compute` has measured 1.3 ms for 38 kB and 3.0 ms for the model's 407 kB."""
PERIOD = (3, 6)
"""Iterations between the exchanges of systems that work alone meanwhile, so that at least four come about."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the scenarios, each to a file of its name."""
    parser = argparse.ArgumentParser(prog="python -m emulation.draw", description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="How many; by default 20.")
    parser.add_argument("--seed", type=int, default=0, help="Of all that is drawn; by default 0.")
    parser.add_argument(
        "--systems",
        default=",".join(SYSTEMS),
        help="Which ones, e.g. dlion,ako; by default all. With others, seeds draw others.",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="Where the files go.")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    for number in range(options.count):
        scenario = draw(number, options.seed, options.systems.split(","))
        (options.output / f"{scenario.name}.yaml").write_text(dump(scenario))
    print(f"{options.count} scenarios in {options.output}", file=sys.stderr)


def draw(number: int, seed: int, systems: Collection[str] = SYSTEMS) -> Scenario:
    """Scenario `number` (0, 1, ...) of a seed; of any so many in succession as there are systems, each has another."""
    order = stream(seed, "systems", number // len(systems)).permutation(sorted(systems))
    system = str(order[number % len(systems)])
    rng = stream(seed, "scenario", number)
    clouds = _clouds(rng)
    workers = sum(len(cloud["workers"]) for cloud in clouds)
    scenario = from_data(
        {
            "name": f"{seed}-{number:02}-{system}",
            "description": f"Drawn by seed {seed}: {workers} workers in {len(clouds)} clouds",
            "seed": int(rng.integers(1000)),
            "duration": f"{DURATION} s",
            "workload": {
                "dataset": "fashion_mnist",
                "model": "mlp",
                "optimizer": {"kind": "sgd", "learning_rate": 0.02},
                "batch_size": 32,
                "evaluate_every": f"{_evaluate_every(rng)} ms",
                "compute_time": {
                    "alpha": f"{_whole(rng, ALPHA)} ms",
                    "beta": f"{_whole(rng, BETA)} ms",
                    "per_message": PER_MESSAGE,
                },
            },
            "cluster": {"clouds": clouds, "wan": {"paths": _paths(rng, [cloud["name"] for cloud in clouds])}},
            "network": {"model": {"kind": "flows", **LINKS}},
            "system": _system(rng, system, clouds),
        }
    )
    compose(scenario.system)  # It knows what a system's parameters may be.
    return scenario


def _clouds(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Some workers in some clouds, at least one in each."""
    workers = _whole(rng, WORKERS)
    count = _whole(rng, (CLOUDS[0], min(CLOUDS[1], workers)))
    places = [*range(count), *(int(place) for place in rng.integers(count, size=workers - count))]
    return [
        {"name": f"cloud{number}", "workers": [_worker(rng) for _ in range(places.count(number))]}
        for number in range(count)
    ]


def _worker(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "compute": {"cores": f"{_whole(rng, CORES)} cores", "noise": round(float(rng.uniform(*NOISE)), 3)},
        "nic": {"up": _bandwidth(rng), "down": _bandwidth(rng)},
    }


def _paths(rng: np.random.Generator, clouds: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"between": list(pair), "bandwidth": _bandwidth(rng), "rtt": f"{_whole(rng, RTT)} ms"}
        for pair in combinations(clouds, 2)
    ]


def _bandwidth(rng: np.random.Generator) -> str | dict[str, Any]:
    """Slow and fast ones are as likely: of 5 to 10 Mbps as many as of 10 to 20, or of 20 to 40."""
    before, after = (f"{np.exp(rng.uniform(*np.log(BANDWIDTH))):.1f} Mbps" for _ in range(2))
    if rng.random() >= STEPS:
        return before
    return {"steps": {"0 s": before, f"{rng.uniform(DURATION / 4, 3 * DURATION / 4):.1f} s": after}}


def _system(rng: np.random.Generator, name: str, clouds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A system, with what it needs to show what it does within so short a run."""
    match name:
        case "local_sgd" | "diloco" | "noloco" | "moshpit" | "sparse_loco":
            return {"name": name, "exchange": {"period": _whole(rng, PERIOD)}}
        case "halos":
            return {"name": name, "exchange": {"period": _whole(rng, PERIOD), "region_updates": 4}}
        case "streaming_diloco" | "decoupled_diloco":
            return {"name": name, "exchange": {"period": 2 * _whole(rng, PERIOD), "delay": 2}}
        case "parameter_server":
            return {"name": name, "topology": {"kind": name, "hosts": [_host(rng, clouds)]}}
        case "async_local_sgd":
            servers = {"kind": "parameter_server", "hosts": [_host(rng, clouds)]}
            return {"name": name, "exchange": {"period": _whole(rng, PERIOD)}, "topology": servers}
        case _:
            return {"name": name}


def _host(rng: np.random.Generator, clouds: Sequence[dict[str, Any]]) -> int | dict[str, Any]:
    """A parameter server's: a worker's machine, or one of its own."""
    if rng.random() < 0.5:
        return int(rng.integers(sum(len(cloud["workers"]) for cloud in clouds)))
    cloud = clouds[int(rng.integers(len(clouds)))]["name"]
    return {"cloud": cloud, "nic": {"up": _bandwidth(rng), "down": _bandwidth(rng)}}


def _evaluate_every(rng: np.random.Generator) -> int:
    """Milliseconds, such that no evaluation falls onto the end of the run."""
    every = _whole(rng, EVALUATE_EVERY)
    return every + (1000 * DURATION % every == 0)


def _whole(rng: np.random.Generator, bounds: tuple[float, float]) -> int:
    """A whole number between the bounds, both included."""
    low, high = bounds
    return int(rng.integers(int(low), int(high) + 1))


if __name__ == "__main__":
    main()
