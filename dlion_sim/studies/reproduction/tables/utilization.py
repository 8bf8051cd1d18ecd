"""Streaming DiLoCo's tables of bandwidths and hours (Douillard et al., 2025, Tables 4 and 1).

arXiv:2501.18512 gives, for models of 1, 10 and 100 billion parameters, the least bandwidth with which workers compute
for 50 to 99 % of the time; its values lie on a grid of 50 points from 0.1 to 1,000 Gbit/s. *Layer by layer* is a model
of one serial link without latency: layers are alike, a forward pass takes a third of a step, and the reduction of a
layer (2 bytes a parameter, half a byte in FP4) starts when its backward pass has ended. Of each stall, overlap takes
off a step. The time of a step is fitted, as the printed ones do not lead to the table: 1.18 to 1.2 times as long.

*Simulated* are two workers and the systems of this simulator, with 24 layers alike charged as a billion parameters;
messages begin when a step has ended, so that nothing is hidden behind its own backward pass, and more is needed where
that decides. Fragments must divide the period, so that it is 96 steps in place of 100.

Table 1 has the hours of a billion parameters for 25 billion tokens over 1 Gbit/s: 23,842 steps of 2^20 tokens, 0.1 s
each. Eager updates are hidden behind a whole period (Kale et al., 2025, arXiv:2502.12996).

A bandwidth is as published at the same point of the grid; hours are within a factor of 1.04.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from dlion_sim.results import Run
from dlion_sim.studies.reproduction.tables.table import Check, Findings, PublishedTable, by_labels

TARGETS = (0.5, 0.8, 0.9, 0.95, 0.99)
GRID = np.logspace(-1, 3, 50)
"""Gbit/s."""
PERIOD, LAYERS_OF_A_FRAGMENT = 100, 3
SIZES = {"1B": (1e9, 24, 0.118), "10B": (1e10, 48, 0.96), "100B": (1e11, 108, 5.86)}
"""Parameters, layers, fitted seconds of a step."""
PRINTED = {"1B": 0.1, "10B": 0.8, "100B": 4.9}
"""The paper's seconds of a step."""
PUBLISHED = {
    "data parallel": (
        (86.8, 152.6, 184.2, 222.3, 569.0),
        (104.8, 222.3, 222.3, 268.3, 471.5),
        (184.2, 323.8, 390.7, 390.7, 471.5),
    ),
    "DiLoCo": ((1.4, 6.2, 13.3, 23.3, 86.8), (1.7, 7.5, 16.0, 33.9, 104.8), (3.0, 11.0, 23.3, 49.4, 184.2)),
    "streaming": ((1.4, 5.2, 9.1, 16.0, 28.1), (1.7, 5.2, 9.1, 13.3, 19.3), (2.4, 6.2, 9.1, 11.0, 19.3)),
    "overlapped": ((1.4, 4.3, 6.2, 9.1, 11.0), (1.7, 3.6, 5.2, 6.2, 7.5), (1.7, 3.6, 4.3, 5.2, 5.2)),
    "overlapped, FP4": ((0.4, 0.9, 1.7, 2.0, 3.0), (0.4, 0.9, 1.4, 1.4, 1.7), (0.5, 0.9, 1.1, 1.1, 1.4)),
}
"""Gbit/s by size and target."""
HOURS = {"data parallel": 109.0, "overlapped, FP4": 0.88, "eager, FP4": 0.67}
"""Of Table 1."""
STEPS = round(25e9 / 2**20)
SIMULATED_PERIOD = 96
"""Iterations of all simulated systems."""
SIMULATED, SIMULATED_STEP = "1B", 0.118
"""The size that is simulated, and the seconds of its step."""


def layer_by_layer(method: str, parameters: float, layers: int, step: float, bandwidth: float) -> float:
    """The utilization by the model, over a link of so many Gbit/s, with `step` seconds a step."""
    seconds = (4 if method.endswith("FP4") else 16) * parameters / layers / (bandwidth * 1e9)
    hidden = {"overlapped": 1, "overlapped, FP4": 1, "eager, FP4": PERIOD}.get(method, 0) * step

    def stall(part: Sequence[int]) -> float:
        """Seconds by which the reduction of these layers ends later than the step in which it starts."""
        end = 0.0
        for layer in sorted(part, reverse=True):
            end = max(end, step / 3 + 2 * step / 3 * (layers - layer) / layers) + seconds
        return max(0.0, end - step - hidden)

    if method == "data parallel":
        return step / (step + stall(range(layers)))
    count = 1 if method == "DiLoCo" else layers // LAYERS_OF_A_FRAGMENT
    stalls = sum(stall(range(fragment, layers, count)) for fragment in range(count))
    return PERIOD * step / (PERIOD * step + stalls)


def utilization_of(run: Run) -> float:
    """Of a run's first worker, from the first exchange of all parameters on."""
    iterations = run.iterations()
    of_one = iterations[iterations["worker"] == 0].sort_values("iteration")
    ends = of_one["virtual_time"].to_numpy()
    return (len(ends) - SIMULATED_PERIOD) * SIMULATED_STEP / float(ends[-1] - ends[SIMULATED_PERIOD - 1])


def least(utilization: Callable[[float], float], target: float) -> int:
    """The first point of the grid that reaches the target, by bisection; the grid's length if none does."""
    low, high = 0, len(GRID)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if utilization(float(GRID[middle])) >= target else (middle + 1, high)
    return low


def nearest(published: float) -> int:
    """The point of the grid that was rounded to that."""
    return int(np.abs(np.log(GRID) - np.log(published)).argmin())


def label(bandwidth: float) -> str:
    """That of so many Gbit/s in the sweep."""
    return f"{bandwidth:.5g} Gbps"


def findings(runs: Sequence[Run]) -> Findings:
    """From simulations of one size by method and bandwidth."""
    simulated = by_labels(runs, "system", "bandwidth")
    rows, checks = [], []
    for method, published in PUBLISHED.items():
        for (size, (parameters, layers, step)), known in zip(SIZES.items(), published, strict=True):
            rows.append([method, size, *(f"{value:g}" for value in known)])
            ways: dict[str, Callable[[float], float]] = {
                "layer by layer": partial(layer_by_layer, method, parameters, layers, step)
            }
            if size == SIMULATED:
                ways["simulated"] = partial(_simulated, simulated, method)
            for by, utilization in ways.items():
                points = [least(utilization, target) for target in TARGETS]
                rows.append(["", by, *map(_shown, points, known)])
                for target, point, value in zip(TARGETS, points, known, strict=True):
                    # One point of the grid is as near as the published values are rounded to.
                    gbps = float(GRID[point]) if point < len(GRID) else math.inf
                    found = value if point == nearest(value) else gbps
                    checks.append(Check(f"Gbit/s for {target:.0%}, {method}, {size}", by, value, found, 1.0))
    by_hours = []
    for method, hours in HOURS.items():
        parameters, layers, step = SIZES[SIMULATED]
        as_fast = PRINTED[SIMULATED] / step  # Without latency, only the product of bandwidth and step counts.
        shares = {
            "layer by layer": layer_by_layer(method, parameters, layers, PRINTED[SIMULATED], 1.0),
            "simulated": _simulated(simulated, method, as_fast),
        }
        found_by = {by: STEPS * PRINTED[SIMULATED] / share / 3600 for by, share in shares.items()}
        checks += [Check(f"hours over 1 Gbit/s, {method}", by, hours, each, 1.04) for by, each in found_by.items()]
        by_hours.append([method, f"{hours:g}", *(f"{each:.3g}" for each in found_by.values())])
    fitted = ", ".join(f"{SIZES[size][2]} s ({PRINTED[size]} s printed, {size})" for size in SIZES)
    tables = [
        pd.DataFrame(rows, columns=["Gbit/s", "parameters", *(f"{target:.0%}" for target in TARGETS)]),
        pd.DataFrame(by_hours, columns=["hours over 1 Gbit/s", "published", *shares]),
    ]
    note = f"In brackets, points of the grid away from the published value. Fitted times of a step: {fitted}."
    return Findings(tables, checks, note)


def _simulated(simulations: Mapping[tuple[str, ...], Run], method: str, bandwidth: float) -> float:
    return utilization_of(simulations[method, label(bandwidth)])


def _shown(point: int, known: float) -> str:
    away = point - nearest(known)
    value = f"{GRID[point]:.1f}" if point < len(GRID) else "more"
    return f"{value} ({away:+d})" if away else f"{known:g}"


TABLE = PublishedTable(
    title="Bandwidth for a compute utilization",
    repeats="Streaming DiLoCo (2025), Tables 4 and 1: bandwidths for utilizations, hours over 1 Gbit/s",
    paper="For 95 %, 1.1 to 2 Gbit/s with overlap and FP4, 222 to 391 by data parallelism; 0.88 hours, not 109",
    about=__doc__ or "",
    compute=findings,
)
