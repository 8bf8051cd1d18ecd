"""Samples a second of gradients on a GPU, against a plain PyTorch loop over the workers and against one large batch.

32 workers compute gradients of Cipher over 32 images of CIFAR-10's shape each: fused, as the simulator does, and one
after another. One model over a batch of all workers' samples shows what the GPU can do when there is no replica to keep
apart. All compute in float32 with deterministic algorithms; optimizers' steps are left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import closing

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.measuring import options, ratio
from dlion_sim.learning import Dataset, FusedGradientExecutor, Layout, Replica, build, flatten
from dlion_sim.learning.datasets import NormalisedImages
from dlion_sim.learning.tasks import Classification

WORKERS, BATCH, ROUNDS, TURNS = 32, 32, 20, 5
CUDA = torch.device("cuda")


def random_images(count: int = 50_000) -> Dataset:
    """A dataset of CIFAR-10's shape, on the GPU."""
    images = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, device=CUDA)
    labels = torch.randint(0, 10, (count,), device=CUDA)
    normalised = NormalisedImages(mean=(0.5,) * 3, std=(0.25,) * 3)
    return Dataset(images, labels, images[:1], labels[:1], Classification(10), normalised)


def plain_gradient(model: nn.Module, dataset: Dataset, indices: Tensor) -> None:
    """A forward and a backward pass."""
    model.zero_grad()
    images = dataset.transform(dataset.train_inputs[indices]).contiguous()  # the format that PyTorch defaults to
    cross_entropy(model(images), dataset.train_targets[indices]).backward()  # type: ignore[no-untyped-call]


def rate(compute: Callable[[], None], rounds: int) -> float:
    """Samples a second of `compute`, which takes a batch of each worker."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(rounds):
        compute()
    torch.cuda.synchronize()
    return rounds * WORKERS * BATCH / (time.perf_counter() - began)


def main() -> None:
    """Take turns."""
    rounds, turns = (1, 1) if options(__doc__).parse_args().short else (ROUNDS, TURNS)
    if not torch.cuda.is_available():
        print("this benchmark needs a GPU that PyTorch can use", file=sys.stderr)
        raise SystemExit(2)
    dataset = random_images()
    model = build("cipher", dataset.input_shape, dataset.task.outputs, seed=0).to(CUDA)
    models = [build("cipher", dataset.input_shape, dataset.task.outputs, seed=0).to(CUDA) for _ in range(WORKERS)]
    replicas = [Replica(Layout.of(model), flatten(model), learning_rate=0.05) for _ in range(WORKERS)]
    rng = np.random.default_rng(0)

    def one_after_another() -> None:
        for each in models:
            plain_gradient(each, dataset, torch.randint(0, len(dataset.train_targets), (BATCH,), device=CUDA))

    def one_batch() -> None:
        indices = torch.randint(0, len(dataset.train_targets), (WORKERS * BATCH,), device=CUDA)
        plain_gradient(model, dataset, indices)

    with closing(FusedGradientExecutor(model, dataset, CUDA)) as executor:

        def fused() -> None:
            tickets = [
                executor.submit(replica, rng.integers(len(dataset.train_targets), size=BATCH)) for replica in replicas
            ]
            for ticket in tickets:
                executor.result(ticket)

        ways = {
            "fused": fused,
            "one after another": one_after_another,
            f"one model, batch of {WORKERS * BATCH}": one_batch,
        }
        for compute in ways.values():
            rate(compute, rounds)  # libraries and graphs are set up
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(turns):
            for name, compute in ways.items():
                rates[name].append(rate(compute, rounds))

    table = Table(title=f"{WORKERS} workers, batches of {BATCH}, Cipher, {torch.cuda.get_device_name()}")
    for column in ("", "samples/s", "times one after another", "times one model"):
        table.add_column(column, justify="right")
    _, loop, batch = rates.values()
    for name, measured in rates.items():
        table.add_row(name, f"{sorted(measured)[turns // 2]:,.0f}", ratio(measured, loop), ratio(measured, batch))
    Console().print(table)


if __name__ == "__main__":
    main()
