"""Samples per second of gradients on a GPU, compared with a plain PyTorch loop over the workers and one large batch.

32 workers compute gradients of Cipher over 32 images of CIFAR-10's shape each: fused, as in the simulator, and one by
one. One model over a batch of all workers' samples shows the speed of the GPU without replicas. All compute in float32
with deterministic algorithms, without optimizer steps.

With --accept, everything that needs a GPU is tested and measured, in eight minutes; see docs/gpu.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import torch
from rich.console import Console
from torch import nn

from benchmarks.gpu_accept.accept import LIMIT, NO_GPU, accept
from benchmarks.gpu_accept.data import images
from benchmarks.gpu_accept.scale import ON_GPU
from benchmarks.gpu_accept.speed import fused, one_by_one, plain_gradient, timed
from benchmarks.measuring import options, ratio, table
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
    """Measure all, alternating."""
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
                if turn:  # the first one sets up libraries and graphs
                    rates[name].append(rate)
    title = f"{WORKERS} workers, batches of {BATCH}, Cipher, {torch.cuda.get_device_name()}"
    shown = table(title, "", "samples/s", "times one after another", "times one model")
    _, loop, batch = rates.values()
    for name, measured in rates.items():
        shown.add_row(name, f"{sorted(measured)[turns // 2]:,.0f}", ratio(measured, loop), ratio(measured, batch))
    Console().print(shown)


def _arguments() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--accept", action="store_true", help="test and measure all that needs a GPU")
    parser.add_argument("--rehearse", action="store_true", help="with --accept: on the CPU, tiny, in seconds")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="with --accept: seconds at most; default %(default)g"
    )
    parser.add_argument("--output", type=Path, help="with --accept: the JSON file to write")
    return parser.parse_args()


def main() -> None:
    """Compare, or run the acceptance."""
    arguments = _arguments()
    if arguments.accept or arguments.rehearse:
        raise SystemExit(accept(arguments.output, arguments.limit, rehearse=arguments.rehearse))
    if not torch.cuda.is_available():
        print(NO_GPU, file=sys.stderr)
        raise SystemExit(2)
    compare(*((1, 1) if arguments.short else (ROUNDS, TURNS)))


if __name__ == "__main__":
    main()
