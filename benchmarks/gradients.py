"""Samples per second of whole simulations, compared with a plain PyTorch loop over the workers.

16 workers train Cipher on images of CIFAR-10's shape, 32 samples per iteration each. Simulations include everything:
selection, exchange, updates and the event loop, except evaluation, which the loop lacks. The loop computes one replica
after another, like a plain simulator, in PyTorch's default memory format. It runs with one thread and with all, of
which the faster counts, in its own process, as the simulator changes the allocation of memory. The gain of the loop by
that change alone is shown, too.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

import torch
from rich.console import Console
from torch.nn.functional import cross_entropy

from benchmarks.measuring import options, ratio, table
from dlion_sim.learning import build
from dlion_sim.learning.process import kept_memory
from dlion_sim.scenario import from_data
from dlion_sim.simulation.simulate import simulate

WORKERS, BATCH, ROUNDS = 16, 32, 12
SHORT = 2, 1
"""Workers and rounds."""
SYSTEMS = {
    "baseline": "baseline",
    "dlion": {"name": "dlion", "batching": {"growth": "none", "profile_batch_sizes": []}},
}


def plain_loop(workers: int, rounds: int, threads: int, memory_is_kept: bool) -> float:
    """Samples per second of the loop."""
    with kept_memory() if memory_is_kept else nullcontext():
        torch.set_num_threads(threads)
        models = [build("cipher", (3, 32, 32), 10, seed=0) for _ in range(workers)]
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.05) for model in models]
        images = torch.randn(1000, 3, 32, 32)
        labels = torch.randint(0, 10, (1000,))
        began = time.perf_counter()
        for _ in range(rounds):
            for model, optimizer in zip(models, optimizers, strict=True):
                batch = torch.randint(0, len(labels), (BATCH,))
                optimizer.zero_grad()
                cross_entropy(model(images[batch]), labels[batch]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
        return rounds * workers * BATCH / (time.perf_counter() - began)


def alone(function: Callable[..., float], *arguments: object) -> float:
    """The result of a function in its own process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def simulation(workers: int, rounds: int, system: object, kernels: str, bandwidth: str) -> float:
    """Samples per second of a whole run without evaluation."""
    scenario = from_data(
        {
            "name": "gradients",
            "iterations": rounds,
            "workload": {
                "dataset": "benchmarks.gpu_accept.data:images",
                "model": "cipher",
                "batch_size": BATCH,
                "evaluate_every": "1000 s",
                "kernels": kernels,
            },
            "cluster": {
                "clouds": [{"name": "lab", "workers": [{"count": workers, "compute": "24 cores", "nic": bandwidth}]}]
            },
            "system": system,
        }
    )
    torch.set_num_threads(os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as folder:
        summary = simulate(scenario, Path(folder) / "run", device="cpu").summary or {}
    return float(summary["samples"] / (summary["wall_seconds"] * (1 - summary["evaluation_share"])))


def main() -> None:
    """Measure all, alternating."""
    parser = options(__doc__, repeat=5)
    parser.add_argument("--bandwidth", default="50 Mbps", help="of each NIC")
    arguments = parser.parse_args()
    cores = os.cpu_count() or 1
    repeat, size = (1, SHORT) if arguments.short else (arguments.repeat, (WORKERS, ROUNDS))
    rates: dict[str, list[float]] = {}
    for _ in range(repeat):
        for threads in sorted({1, cores}):
            rates.setdefault(f"plain loop, {threads} threads", []).append(alone(plain_loop, *size, threads, False))
        kept = f"the loop, {cores} threads, freed memory kept"
        rates.setdefault(kept, []).append(alone(plain_loop, *size, cores, True))
        for name, system in SYSTEMS.items():
            for kernels, label in (("fast", name), ("torch", f"{name}, PyTorch's kernels")):
                rates.setdefault(label, []).append(simulation(*size, system, kernels, arguments.bandwidth))
    best = max((name for name in rates if name.startswith("plain")), key=lambda name: sorted(rates[name])[-1])
    title = f"gradients: {size[0]} workers, batches of {BATCH}, Cipher, {arguments.bandwidth}"
    shown = table(title, "", "samples/s", f"times {best}")
    for name, measured in rates.items():
        shown.add_row(name, f"{sorted(measured)[len(measured) // 2]:,.0f}", ratio(measured, rates[best]))
    Console().print(shown)


if __name__ == "__main__":
    main()
