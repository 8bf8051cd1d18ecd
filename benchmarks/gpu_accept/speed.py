"""Samples per second of gradients, fused as in the simulator and in a plain PyTorch loop over the workers."""

from __future__ import annotations

import copy
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.gpu_accept.correctness import UnmetError
from benchmarks.gpu_accept.record import Row
from benchmarks.gpu_accept.scale import Scale
from dlion_sim.learning import Dataset, FusedGradientExecutor, Layout, Replica, flatten
from dlion_sim.learning.process import exact_cuda

LARGEST = "resnet18"
MOST_ROUNDS = 50
LONG = 1.0
"""Longer rounds (s) are not repeated."""


def rates(scale: Scale, folder: Path, seconds: float) -> Iterator[Row]:
    """Rates and peak memory of each model and number of workers, those of the goals first."""
    problems = []
    # The largest model may take all the time, so it is last, with few workers first.
    cases = [(model, workers) for workers in scale.workers for model in scale.models if model != LARGEST]
    cases += [(LARGEST, workers) for workers in reversed(scale.workers) if LARGEST in scale.models]
    for model, workers in cases:
        row: dict[str, str | int | float | None] = {"model": model, "workers": workers}
        try:
            for way, compute in (("one_by_one", one_by_one), ("fused", fused)):
                row[way], row[f"{way}_gib"] = measured(scale, model, workers, compute)
        except RuntimeError as error:  # such as out of memory
            row["problem"] = str(error).partition("\n")[0]
            problems.append(f"{model} with {workers} workers: {row['problem']}")
        yield row
    if problems:
        raise UnmetError("; ".join(problems))


Rounds = Iterator[Callable[[], None]]
Way = Callable[[nn.Module, Dataset, int, int, torch.device], Rounds]


def one_by_one(model: nn.Module, dataset: Dataset, workers: int, batch: int, device: torch.device) -> Rounds:
    """Gradients of all models, one by one, in PyTorch's default memory format."""
    models = [copy.deepcopy(model).to(device) for _ in range(workers)]
    there = dataset.to(device)
    with exact_cuda():

        def compute() -> None:
            for each in models:
                indices = torch.randint(0, len(there.train_targets), (batch,), device=device)
                plain_gradient(each, there, indices)

        yield compute


def plain_gradient(model: nn.Module, dataset: Dataset, indices: Tensor) -> None:
    """A forward and a backward pass."""
    model.zero_grad()
    inputs = dataset.transform(dataset.train_inputs[indices]).contiguous()
    loss = dataset.task.loss(model(inputs), dataset.train_targets[indices]) / len(indices)
    loss.backward()  # type: ignore[no-untyped-call]


def fused(model: nn.Module, dataset: Dataset, workers: int, batch: int, device: torch.device) -> Rounds:
    """Gradients of all replicas, fused."""
    there, layout, rng = flatten(model).to(device), Layout.of(model), np.random.default_rng(0)
    replicas = [Replica(layout, there, learning_rate=0.1) for _ in range(workers)]
    with closing(FusedGradientExecutor(model, dataset, device)) as executor:

        def compute() -> None:
            samples = [rng.integers(len(dataset.train_targets), size=batch) for _ in replicas]
            tickets = [executor.submit(*each) for each in zip(replicas, samples, strict=True)]
            for ticket in tickets:
                executor.result(ticket)

        yield compute


def measured(scale: Scale, model: str, workers: int, way: Way) -> tuple[float, float | None]:
    """Samples per second, the median of some turns; and the peak memory of the device (GiB)."""
    gc.collect()
    on_gpu = scale.device == "cuda"
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    rounds = way(*scale.problem(model), workers, scale.batch, torch.device(scale.device))
    with closing(rounds):  # type: ignore[type-var]
        compute = next(rounds)
        once = [timed(scale, compute, 1) for _ in range(2)][-1]  # the first one sets up libraries and graphs
        count = max(1, min(MOST_ROUNDS, int(scale.seconds / once)))
        turns = [timed(scale, compute, count) for _ in range(scale.turns)] if once < LONG else [once]
        took = median(turns)
    memory = torch.cuda.max_memory_allocated() / 2**30 if on_gpu else None
    return workers * scale.batch * count / took, memory


def timed(scale: Scale, compute: Callable[[], None], rounds: int) -> float:
    """Seconds of some rounds, until all is computed."""
    wait_for(scale)
    began = time.perf_counter()
    for _ in range(rounds):
        compute()
    wait_for(scale)
    return time.perf_counter() - began


def wait_for(scale: Scale) -> None:
    """Wait until the device has computed everything."""
    if scale.device == "cuda":
        torch.cuda.synchronize()
