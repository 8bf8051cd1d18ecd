"""HALoS's comparison (ICML'25): hours until 98,304 local steps of four regions with four workers each.

The inputs are those of its public code (utnslab/halos): 16 speeds, bandwidths from 0.117 to 0.935 Gbit/s between
regions, 100 in them, 238.391 ms a step at the greatest speed, and Pythia-70M's 70.4 million parameters in FP32.
*Its rules* is a replay of its events: a transfer takes its bytes over the bandwidth, whatever else is on the link, and
no round trip. DiLoCo's is a ring through all 16, over the least bandwidth of the best ring of regions (in brackets: of
all links). *Shared links* and *and round trips* (0.1 s between regions) are simulations of the systems here, which
share links; DiLoCo's is also a ring, in which a worker computes as soon as it has received all, while it still sends:
the slowest one, before the slowest link, does so for 14 seconds a round. A part of what HALoS's regional servers apply
never reaches the global one. A claimed ratio is as published within a factor of 1.2.

Over DiLoCo, 6.7 of the claimed 7.5 times are left on shared links. Asynchronous local SGD takes three times as long as
by its rules, as the workers of a region share the path to the server: HALoS's advantage over it grows from 1.7 to 5.5
times.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import permutations
from math import ceil

import pandas as pd

from dlion_sim.results import Run
from dlion_sim.studies.reproduction.tables.table import Check, Findings, PublishedTable, by_labels

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
WAYS, RTTS, WITHIN = ("its rules", "shared links", "and round trips"), ("0 s", "0.1 s"), 1.2


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


def hours_of(run: Run) -> float:
    """Until `STEPS` local steps of all workers; of a run that ended before, at its pace."""
    ends = run.iterations()["virtual_time"].sort_values().to_numpy()
    done = min(STEPS, len(ends))
    return float(ends[done - 1]) / 3600 * STEPS / done


def dropped_of(run: Run) -> float:
    """The part of a run's updates that never reaches the global server."""
    return float(run.outcome.get("dropped_samples") or 0) / len(run.iterations())


def findings(runs: Sequence[Run]) -> Findings:
    """From simulations of the systems, with and without round-trip times."""
    simulations = by_labels(runs, "system", "rtt")
    by_halos, dropped = halos()
    slowest = min(map(min, BANDWIDTHS))
    by_rules = {
        "DiLoCo": [diloco(dynamic=False, bandwidth=each) for each in (best_ring(), slowest)],
        "asynchronous local SGD": [asynchronous()],
        "HALoS": [by_halos],
    }
    found = {system: [hours_of(simulations[system, rtt]) for rtt in RTTS] for system in by_rules}
    rows, checks = [], []
    for system, rules in by_rules.items():
        times = [hours / reference for hours, reference in zip(found[system], found["HALoS"], strict=True)]
        own, claimed = rules[0] / by_halos, CLAIMED.get(system)
        rows.append(
            [
                system,
                _with_slowest(rules),
                *(f"{each:.2f}" for each in found[system]),
                f"{claimed:g}" if claimed else "",
                f"{own:.1f}",
                *(f"{each:.1f}" for each in times),
            ]
        )
        if claimed:
            for way, ratio in zip(WAYS, (own, *times), strict=True):
                checks.append(Check(f"hours of {system} over HALoS's", way, claimed, ratio, WITHIN))
    dynamic = [diloco(dynamic=True, bandwidth=each) for each in (best_ring(), slowest)]
    rows.append(["DiLoCo, steps by speed", _with_slowest(dynamic), "", "", "", "", "", ""])
    parts = ", ".join(f"{each:.1%}" for each in dropped)
    simulated = (f"{dropped_of(simulations['HALoS', rtt]):.1%} of all" for rtt in RTTS)
    rows.append(["HALoS, dropped", parts, *simulated, "", "", "", ""])
    columns = ["hours", *WAYS, "claimed: times HALoS", *(f"{way}: times" for way in WAYS)]
    return Findings([pd.DataFrame(rows, columns=columns)], checks)


def _with_slowest(hours: list[float]) -> str:
    return f"{hours[0]:.2f}" + (f" ({hours[1]:.2f})" if hours[1:] else "")


TABLE = PublishedTable(
    title="HALoS's comparison",
    repeats="HALoS (ICML'25), abstract and code: times of four methods in four regions",
    paper="Up to 7.5 times as fast as synchronous baselines, up to 2.1 times as fast as asynchronous ones",
    about=__doc__ or "",
    compute=findings,
)
