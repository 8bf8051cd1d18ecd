"""For what part of the time a device computes: kernels on a GPU, or operators on a CPU, where that is tried."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu_accept.record import Row
from benchmarks.gpu_accept.scale import Scale
from benchmarks.gpu_accept.speed import fused, timed, wait_for
from dlion_sim.scenario import from_data
from dlion_sim.simulation import simulate

WORKERS = 16
ROUNDS = 20


def busy(scale: Scale, folder: Path, seconds: float) -> Iterator[Row]:
    """With Cipher: while a whole simulation runs, and while gradients alone are computed."""
    workers = min(WORKERS, scale.workers[0])
    scenario = from_data(scale.scenario("cipher", workers))

    def run(name: str) -> None:
        simulate(scenario, folder / name, device=scale.device, checkpoint_every=None)

    run("first")  # libraries, kernels and graphs are set up
    yield {"what": "simulation", "model": "cipher", "workers": workers, **_watched(scale, lambda: run("second"))}
    rounds = fused(*scale.problem("cipher"), workers, scale.batch, torch.device(scale.device))
    with closing(rounds):  # type: ignore[type-var]
        compute = next(rounds)
        timed(scale, compute, 2)
        count = ROUNDS if scale.device == "cuda" else 1
        told = _watched(scale, lambda: timed(scale, compute, count))
    yield {"what": "gradients", "model": "cipher", "workers": workers, **told}


def _watched(scale: Scale, work: Callable[[], object]) -> dict[str, float | int]:
    """The part of the time in which something was computed, the seconds, and how many kernels there were."""
    on_gpu = scale.device == "cuda"
    kind = "CUDA" if on_gpu else "CPU"
    with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as profiler:
        began = time.perf_counter()
        work()
        wait_for(scale)
        seconds = time.perf_counter() - began
    events = [
        each for each in profiler.events() or () if each.device_type.name == kind and not each.name.startswith("Mem")
    ]
    covered = union((each.time_range.start, each.time_range.end) for each in events)
    return {"busy": covered / 1e6 / seconds, "seconds": seconds, "kernels": len(events)}


def union(spans: Iterable[tuple[float, float]]) -> float:
    """The length of all that some of the spans, (begin, end) each, cover."""
    covered, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        covered += max(0.0, end - max(begin, until))
        until = max(until, end)
    return covered
