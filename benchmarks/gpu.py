"""Samples a second of gradients on a GPU, against a plain PyTorch loop over the workers and against one large batch.

32 workers compute gradients of Cipher over 32 images of CIFAR-10's shape each: fused, as the simulator does, and one
after another. One model over a batch of all workers' samples shows what the GPU can do when there is no replica to keep
apart. All compute in float32 with deterministic algorithms; optimizers' steps are left out.

With --accept, everything that only a GPU can tell is tried and measured, in eight minutes; docs/gpu.md says what.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from benchmarks.gpu_accept.accept import LIMIT, NO_GPU, accept
from benchmarks.gpu_accept.data import images
from benchmarks.gpu_accept.scale import ON_GPU
from benchmarks.gpu_accept.speed import fused, one_by_one, plain_gradient, timed
from benchmarks.measuring import options, ratio
from dlion_sim.learning import Dataset, build

WORKERS, BATCH, ROUNDS, TURNS = 32, 32, 20, 5
CUDA = torch.device("cuda")


def one_batch(
    model: nn.Module, dataset: Dataset, workers: int, batch: int, device: torch.device
) -> Iterator[Callable[[], None]]:
    """A gradient of one model over the samples of all workers."""
    there, only = dataset.to(device), model.to(device)

    def compute() -> None:
        plain_gradient(only, there, torch.randint(0, len(there.train_targets), (workers * batch,), device=device))

    yield compute


def compare(rounds: int, turns: int) -> None:
    """Take turns."""
    ways = {"fused": fused, "one after another": one_by_one, f"one model, batch of {WORKERS * BATCH}": one_batch}
    dataset = images()
    rates: dict[str, list[float]] = {name: [] for name in ways}
    with ExitStack() as stack:
        computing = {}
        for name, way in ways.items():
            model = build("cipher", dataset.input_shape, dataset.task.outputs, seed=0)
            made = stack.enter_context(closing(way(model, dataset, WORKERS, BATCH, CUDA)))  # type: ignore[type-var]
            computing[name] = next(made)
        for turn in range(turns + 1):
            for name, compute in computing.items():
                rate = rounds * WORKERS * BATCH / timed(ON_GPU, compute, rounds)
                if turn:  # before, libraries and graphs are set up
                    rates[name].append(rate)
    table = Table(title=f"{WORKERS} workers, batches of {BATCH}, Cipher, {torch.cuda.get_device_name()}")
    for column in ("", "samples/s", "times one after another", "times one model"):
        table.add_column(column, justify="right")
    _, loop, batch = rates.values()
    for name, measured in rates.items():
        table.add_row(name, f"{sorted(measured)[turns // 2]:,.0f}", ratio(measured, loop), ratio(measured, batch))
    Console().print(table)


def _said() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--accept", action="store_true", help="try and measure all that needs a GPU")
    parser.add_argument("--rehearse", action="store_true", help="with --accept: on the CPU, tiny, in seconds")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="with --accept: seconds at most; default %(default)g"
    )
    parser.add_argument("--output", type=Path, help="with --accept: the JSON file to write")
    return parser.parse_args()


def main() -> None:
    """Compare, or try everything."""
    said = _said()
    if said.rehearse:
        raise SystemExit(accept(said.output, said.limit, rehearse=True))
    if said.accept:
        raise SystemExit(accept(said.output, said.limit, rehearse=False))
    if not torch.cuda.is_available():
        print(NO_GPU, file=sys.stderr)
        raise SystemExit(2)
    compare(*((1, 1) if said.short else (ROUNDS, TURNS)))


if __name__ == "__main__":
    main()
