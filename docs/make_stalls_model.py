"""Fit what an iteration of a ring waits to the number and size of its messages; draw docs/stalls-model.png.

`python docs/make_stalls_model.py` prints the rows of the table in docs/stalls.md; it takes some minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from matplotlib.ticker import NullFormatter, StrMethodFormatter

from dlion_sim.analysis.stalls.attribution import LINKS, stalls
from dlion_sim.analysis.stalls.macroscopic import Model, fit
from dlion_sim.figures.style import PALETTE, drawing, legend_below
from dlion_sim.learning import build
from dlion_sim.scenario import from_data
from dlion_sim.simulation import simulate

FIGURE = Path(__file__).with_name("stalls-model.png")
MODELS = ("mlp", "tutorial_cnn", "tf_ako", "cipher", "mobilenet", "resnet18")
SHAPE, CLASSES = (3, 32, 32), 10
"""Of CIFAR-10."""
WORKERS = (2, 4, 8)
ITERATIONS, WARM_UP = 9, 3
NETWORKS: dict[str, tuple[dict[str, str], float, float]] = {
    "like a WAN's": ({"bandwidth": "100 Mbps", "rtt": "40 ms"}, 100e6, 0.04),
    "like a LAN's": ({"bandwidth": "10 Gbps", "rtt": "200 us"}, 10e9, 0.0002),
}
"""What the workers are joined by, its bits per second, and its round-trip time (s)."""


@dataclass(frozen=True)
class Point:
    """What an iteration sends, and the seconds that it waits."""

    messages: int
    size: float
    stall: float


def points(network: dict[str, str], folder: Path) -> Iterator[Point]:
    """Of rings of a worker a place: each a small network that learns, charged as one of the project's models."""
    for model in MODELS:
        parameters = sum(each.numel() for each in build(model, SHAPE, CLASSES, seed=0).parameters())
        for workers in WORKERS:
            run = simulate(from_data(ring(network, workers, parameters)), folder, device="cpu", force=True)
            waited = stalls(run, WARM_UP).per_iteration[[*LINKS]].sum()
            sent = run.transfers().query("sender == 0")["bytes"].sum() / ITERATIONS
            yield Point(2 * (workers - 1), float(sent), float(waited))


def ring(network: dict[str, str], workers: int, parameters: int) -> dict[str, Any]:
    """The scenario."""
    machine = {"compute": "8 cores", "nic": "100 Gbps"}
    return {
        "name": "ring",
        "iterations": ITERATIONS,
        "workload": {
            "dataset": "digits",
            "batch_size": 8,
            "evaluate_every": "1000 h",
            "evaluation_samples": 1,
            "compute_time": {"beta": "10 ms"},
            "cost_as": {"parameters": parameters},
        },
        "cluster": {
            "clouds": [{"name": f"place{number}", "workers": [machine]} for number in range(workers)],
            "wan": network,
        },
        "system": "ring_allreduce",
    }


def draw(found: dict[str, tuple[list[Point], Model]]) -> None:
    """What was simulated against what the models say."""
    with drawing(FIGURE, height=2.8) as figure:
        axes = figure.subplots()
        handles = []
        for (name, (told, model)), colour in zip(found.items(), PALETTE, strict=False):
            said = [model.stall(point.messages, point.size) for point in told]
            handles += axes.plot(said, [point.stall for point in told], "o", markersize=3, color=colour, label=name)
        ends = [min(point.stall for told, _ in found.values() for point in told), 0.0]
        ends[1] = max(point.stall for told, _ in found.values() for point in told)
        axes.plot(ends, ends, color="0.6", linewidth=0.6, zorder=0.9)
        axes.set(xscale="log", yscale="log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("Stall by the model (s)")
        axes.set_ylabel("Stall of an iteration,\nsimulated (s)")
        legend_below(figure, handles, [*found])


def main() -> None:
    """Simulate, fit, draw and tell."""
    found = {}
    for name, (network, bits, round_trip) in NETWORKS.items():
        with TemporaryDirectory() as folder:
            told = list(points(network, Path(folder) / "run"))
        model = fit(*zip(*((point.messages, point.size, point.stall) for point in told), strict=True))
        found[name] = told, model
        told_by_model = (
            f"{1000 * model.seconds_per_message:.4g} ms | {1e9 * model.seconds_per_byte:.4g} ns | "
            f"{1000 * model.seconds:.2g} ms | {model.explained:.4f}"
        )
        print(f"| {name} | {500 * round_trip:.4g} ms | {8e9 / bits:.4g} ns | {told_by_model} |")
    draw(found)


if __name__ == "__main__":
    main()
