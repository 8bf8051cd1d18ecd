"""HALoS's comparison (ICML'25): hours until 98,304 local steps of four regions with four workers each.

The inputs are those of its public code (utnslab/halos): 16 speeds, bandwidths from 0.117 to 0.935 Gbit/s between
regions, 100 in them, 238.391 ms a step at the greatest speed, and Pythia-70M's 70.4 million parameters in FP32.
*Its rules* is a replay of its events: a transfer takes its bytes over the bandwidth, whatever else is on the link, and
no round trip. DiLoCo's is a ring through all 16, over the least bandwidth of the best ring of regions (in brackets: of
all links). *Shared links* and *and round trips* (0.1 s between regions) are simulations of the systems here, which
share links; DiLoCo's is also a ring. A part of what HALoS's regional servers apply never reaches the global one.

Over DiLoCo, the claim holds on shared links. Asynchronous local SGD takes three times as long as by its rules, as the
workers of a region share the path to the server: HALoS's advantage over it grows from 1.7 to 5.5 times.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from itertools import combinations, permutations
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import Tensor, nn

import dlion_sim
from benchmarks.measuring import options, present, workload, zeros

SPEEDS = (
    (0.232, 0.907, 0.828, 0.347),
    (0.574, 0.531, 0.722, 0.194),
    (0.852, 0.132, 0.896, 0.107),
    (0.827, 0.515, 0.527, 0.788),
)
"""By region and worker."""
BANDWIDTHS = (
    (100, 0.537, 0.935, 0.202),
    (0.537, 100, 0.386, 0.117),
    (0.935, 0.386, 100, 0.127),
    (0.202, 0.117, 0.127, 100),
)
"""Gbit/s between regions."""
PARAMETERS, STEP, STEPS = 70_426_624, 0.238391, 98_304
"""Of the model; seconds of a step at the greatest speed; local steps in all."""
REGION = [region for region, speeds in enumerate(SPEEDS) for _ in speeds]
SPEED = [speed / max(map(max, SPEEDS)) for speeds in SPEEDS for speed in speeds]
WORKERS = len(SPEED)
DILOCO_PERIOD, HALOS_PERIOD, REGION_UPDATES = 32, 8, 32
CLAIMED = {"DiLoCo": 7.5, "asynchronous local SGD": 2.1}
"""How many times as long they take as HALoS, at most, as its abstract says."""


def steps(period: int, *, dynamic: bool) -> list[int]:
    """The local steps of each worker in a period: fewer for slower ones if `dynamic`."""
    return [max(1, ceil(period * speed)) if dynamic else period for speed in SPEED]


def transfer(one: int, other: int) -> float:
    """Seconds of the parameters between two regions."""
    return PARAMETERS * 32 / (BANDWIDTHS[one][other] * 1e9)


def best_ring() -> float:
    """The least bandwidth of the ring of regions in which that is largest (Gbit/s)."""
    rings = permutations(range(len(SPEEDS)))
    return max(
        min(BANDWIDTHS[one][other] for one, other in zip(ring, ring[1:] + ring[:1], strict=True)) for ring in rings
    )


def diloco(*, dynamic: bool, bandwidth: float) -> float:
    """Hours by its rules."""
    taken = steps(DILOCO_PERIOD, dynamic=dynamic)
    compute = max(STEP * count / speed for count, speed in zip(taken, SPEED, strict=True))
    exchange = 2 * (WORKERS - 1) / WORKERS * PARAMETERS * 32 / (bandwidth * 1e9)
    return ceil(STEPS / sum(taken)) * (compute + exchange) / 3600


def asynchronous() -> float:
    """Hours by its rules, with the server in the first region."""
    taken, done = steps(DILOCO_PERIOD, dynamic=True), 0
    lasts = [2 * transfer(0, REGION[each]) + STEP * taken[each] / SPEED[each] for each in range(WORKERS)]
    events = [(seconds, worker) for worker, seconds in enumerate(lasts)]
    heapify(events)
    while True:
        time, worker = events[0]
        done += taken[worker]
        if done >= STEPS:
            return time / 3600
        heapreplace(events, (time + lasts[worker], worker))


def halos() -> tuple[float, list[float]]:
    """Hours by its rules, and the part of each region's updates that never reaches the global server."""
    taken, done = steps(HALOS_PERIOD, dynamic=True), 0
    lasts = [2 * transfer(0, 0) + STEP * taken[each] / SPEED[each] for each in range(WORKERS)]
    events: list[tuple[float, int, str, int]] = [(seconds, each, "worker", 0) for each, seconds in enumerate(lasts)]
    heapify(events)
    regions = range(len(SPEEDS))
    updates, merged, sent, unsent = ([0 for _ in regions] for _ in range(4))
    """Of each region: its updates, and how many of them when it last merged and last sent; local steps since."""
    dropped = [0 for _ in regions]
    while True:
        time, number, what, count = heappop(events)
        match what:
            case "worker":
                region = REGION[number]
                updates[region] += 1
                unsent[region] += taken[number]
                if updates[region] == merged[region] + REGION_UPDATES:
                    heappush(events, (time + transfer(region, 0), region, "global", unsent[region]))
                    sent[region], unsent[region] = updates[region], 0
                heappush(events, (time + lasts[number], number, "worker", 0))
            case "global":
                done += count
                if done >= STEPS:
                    return time / 3600, [dropped[each] / updates[each] for each in regions]
                heappush(events, (time + transfer(0, number), number, "merge", 0))
            case _:
                dropped[number] += updates[number] - sent[number]
                merged[number] = updates[number]


SYSTEMS: dict[str, dict[str, Any]] = {
    "DiLoCo": {"name": "diloco", "exchange": {"period": DILOCO_PERIOD, "route": "ring"}},
    "asynchronous local SGD": {
        "name": "async_local_sgd",
        "exchange": {"period": DILOCO_PERIOD, "outer_learning_rate": 0.05 * 32, "momentum_every": 32},
        "topology": {"kind": "parameter_server", "hosts": [{"cloud": "region0"}]},
    },
    "HALoS": {"name": "halos", "exchange": {"period": HALOS_PERIOD, "region_updates": REGION_UPDATES}},
}
LONG_ENOUGH = {"DiLoCo": 6, "asynchronous local SGD": 4, "HALoS": 0.8}
"""Hours."""


def simulated(system: str, rtt: float, local_steps: int) -> tuple[float, float]:
    """Hours until so many local steps of all workers, with `rtt` seconds between regions; and the part dropped."""
    clouds = [
        {
            "name": f"region{region}",
            "workers": [
                {"compute": f"{SPEED[each]:.9f} cores", "nic": "100 Gbps"}
                for each in range(WORKERS)
                if REGION[each] == region
            ],
        }
        for region in range(len(SPEEDS))
    ]
    paths = [
        {"between": [f"region{a}", f"region{b}"], "bandwidth": f"{BANDWIDTHS[a][b]} Gbps", "rtt": f"{rtt} s"}
        for a, b in combinations(range(len(SPEEDS)), 2)
    ]
    scenario = {
        "name": "halos",
        "duration": f"{LONG_ENOUGH[system] * local_steps / STEPS:.6f} h",
        "workload": workload(
            __spec__.name,
            "line",
            cost_as={"parameters": PARAMETERS, "flops": "1 FLOP"},
            compute_time={"alpha": "0 s", "beta": f"{STEP * 1000} ms"},
        ),
        "cluster": {"clouds": clouds, "wan": {"paths": paths}},
        "system": SYSTEMS[system],
    }
    with TemporaryDirectory() as folder:
        run = dlion_sim.simulate(scenario, Path(folder) / "run")
        ends = run.iterations()["virtual_time"].sort_values().to_numpy()
        summary = run.summary
    dropped = (summary or {}).get("dropped_samples") or 0
    return float(ends[local_steps - 1]) / 3600, dropped / len(ends)


def numbers() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A data set of nothing in particular."""
    return zeros(WORKERS, 1)


def line(dataset: object) -> nn.Module:
    """One layer of few parameters."""
    return nn.Linear(1, 1)


def rows(local_steps: int) -> Iterator[list[str]]:
    """The table; simulations have so many local steps."""
    whole, (by_halos, dropped) = STEPS / local_steps, halos()
    slowest = min(min(each) for each in BANDWIDTHS)
    by_rules = {
        "DiLoCo": f"{diloco(dynamic=False, bandwidth=best_ring()):.2f} "
        f"({diloco(dynamic=False, bandwidth=slowest):.2f})",
        "asynchronous local SGD": f"{asynchronous():.2f}",
        "HALoS": f"{by_halos:.2f}",
    }
    found = {system: [simulated(system, rtt, local_steps) for rtt in (0.0, 0.1)] for system in SYSTEMS}
    for system, rules in by_rules.items():
        hours = [whole * each for each, _ in found[system]]
        times = [each / reference for (each, _), (reference, _) in zip(found[system], found["HALoS"], strict=True)]
        own = float(rules.split()[0]) / by_halos
        claim = f"{CLAIMED[system]:g}" if system in CLAIMED else ""
        yield [
            system,
            rules,
            *(f"{each:.2f}" for each in hours),
            claim,
            f"{own:.1f}",
            *(f"{each:.1f}" for each in times),
        ]
    dynamic = (diloco(dynamic=True, bandwidth=each) for each in (best_ring(), slowest))
    yield ["DiLoCo, steps by speed", "{:.2f} ({:.2f})".format(*dynamic), "", "", "", "", "", ""]
    parts = ", ".join(f"{each:.1%}" for each in dropped)
    yield ["HALoS, dropped", parts, *(f"{each:.1%} of all" for _, each in found["HALoS"]), "", "", "", ""]


def main() -> None:
    """Print the table, and write it to `--output`."""
    arguments = options(__doc__, page=True).parse_args()
    ways = ["its rules", "shared links", "and round trips"]
    columns = ["hours", *ways, "claimed: times HALoS", *(f"{way}: times" for way in ways)]
    found = list(rows(STEPS // 64 if arguments.short else STEPS))
    titles = f"hours until {STEPS:,} local steps", "HALoS's comparison"
    present("halos", __doc__, titles, columns, found, arguments.output)


if __name__ == "__main__":
    main()
