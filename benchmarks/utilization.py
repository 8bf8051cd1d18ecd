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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import Console
from torch import Tensor, nn

import dlion_sim
from benchmarks.measuring import markdown, options, table, workload, write_page, zeros

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
SYSTEMS: dict[str, dict[str, Any]] = {
    "data parallel": {"name": "baseline"},
    "DiLoCo": {"name": "diloco", "exchange": {"period": SIMULATED_PERIOD, "precision": "bf16"}},
    **{
        method: {
            "name": "streaming_diloco",
            "exchange": {"period": SIMULATED_PERIOD, "fragments": 8, "precision": precision, **overlap},
        }
        for method, overlap, precision in (
            ("streaming", {"delay": 0}, "bf16"),
            ("overlapped", {"delay": 1}, "bf16"),
            ("overlapped, FP4", {"delay": 1}, "fp4"),
            ("eager, FP4", {"eager": True}, "fp4"),
        )
    },
}


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


def simulated(method: str, step: float, bandwidth: float) -> float:
    """The utilization of two workers with a billion parameters, over a path of so many Gbit/s, from the first exchange
    of all parameters on."""
    gradients_in_two_bytes = 0.5 if method == "data parallel" else 1.0
    clouds = [{"name": name, "workers": [{"compute": "1 core", "nic": "100000 Gbps"}]} for name in ("east", "west")]
    scenario = {
        "name": "utilization",
        "iterations": 3 * SIMULATED_PERIOD,
        "workload": workload(
            __spec__.name,
            "alike",
            cost_as={"parameters": int(1e9 * gradients_in_two_bytes), "flops": "1 FLOP"},
            compute_time={"alpha": f"{step} s", "beta": "0.001 us"},
        ),
        "cluster": {"clouds": clouds, "wan": {"bandwidth": f"{bandwidth:.9g} Gbps", "rtt": "0 s"}},
        "system": SYSTEMS[method],
    }
    with TemporaryDirectory() as folder:
        run = dlion_sim.simulate(scenario, Path(folder) / "run")
        iterations = run.iterations()
    of_one = iterations[iterations["worker"] == 0].sort_values("iteration")
    ends = of_one["virtual_time"].to_numpy()
    return 2 * SIMULATED_PERIOD * step / float(ends[-1] - ends[SIMULATED_PERIOD - 1])


def hours(*, with_simulations: bool) -> list[list[str]]:
    """Rows of Table 1: published, layer by layer and perhaps simulated hours."""
    parameters, layers, _ = SIZES["1B"]
    rows = []
    for method, published in HOURS.items():
        utilizations = [layer_by_layer(method, parameters, layers, PRINTED["1B"], 1.0)]
        utilizations += [simulated(method, PRINTED["1B"], 1.0)] if with_simulations else []
        found = [STEPS * PRINTED["1B"] / utilization / 3600 for utilization in utilizations]
        rows.append([method, f"{published:g}", *(f"{each:.3g}" for each in found)])
    return rows


def numbers() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A data set of nothing in particular."""
    return zeros(64, 32)


def alike(dataset: object) -> nn.Module:
    """24 layers of 1,024 parameters."""
    return nn.Sequential(*(nn.Linear(32, 32, bias=False) for _ in range(24)))


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


def main() -> None:
    """Print the table, and write it to `--output`."""
    arguments = options(__doc__, page=True).parse_args()
    columns = ["method", "parameters", *(f"{target:.0%}" for target in TARGETS)]
    rows, apart = [], []
    for method, published in PUBLISHED.items():
        for (size, (parameters, layers, step)), known in zip(SIZES.items(), published, strict=True):
            ways = [lambda b, p=parameters, n=layers, s=step, m=method: layer_by_layer(m, p, n, s, b)]
            if size == "1B" and not arguments.short:
                ways.append(cache(lambda b, s=step, m=method: simulated(m, s, b)))
            points = [[least(way, target) for target in TARGETS] for way in ways]
            apart += [found - nearest(value) for found, value in zip(points[0], known, strict=True)]
            rows.append([method, size, *(f"{value:g}" for value in known)])
            for name, found in zip(("layer by layer", "simulated"), points, strict=False):
                rows.append(["", name, *map(_shown, found, known)])
    equal = sum(each == 0 for each in apart)
    said = (
        f"Layer by layer, {equal} of {len(apart)} values are at the same point of the grid, and the others "
        f"{max(map(abs, apart))} away at most."
    )
    shown = table("Gbit/s for a compute utilization", *columns, names=2, caption=said)
    for cells in rows:
        shown.add_row(*cells)
    Console().print(shown)
    by_hours = hours(with_simulations=not arguments.short)
    for cells in by_hours:
        Console().print("Hours over 1 Gbit/s (published, layer by layer, simulated):", *cells)
    if arguments.output:
        fitted = ", ".join(f"{SIZES[size][2]} s ({PRINTED[size]} s printed, {size})" for size in SIZES)
        about = [
            (__doc__ or "").strip(),
            markdown(["hours over 1 Gbit/s", "published", "layer by layer", "simulated"], by_hours),
            f"Fitted times of a step (Table 4): {fitted}.",
            f"Gbit/s; in brackets, points of the grid away from the published value.\n{said}\n"
            "`python -m benchmarks.utilization --output results/utilization`",
        ]
        write_page(arguments.output, "Bandwidth for a compute utilization", about, columns, rows)


def _shown(point: int, known: float) -> str:
    away = point - nearest(known)
    value = f"{GRID[point]:.1f}" if point < len(GRID) else "more"
    return f"{value} ({away:+d})" if away else f"{known:g}"


if __name__ == "__main__":
    main()
