"""The share of time in which a device computes: kernels on a GPU, or operators on a CPU in a rehearsal."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu_accept.record import Row
from benchmarks.gpu_accept.scale import Scale
from benchmarks.gpu_accept.speed import fused, timed, wait_for
from dlion_sim.scenario import from_data
from dlion_sim.simulation import Progress, simulate

WORKERS = 16
ROUNDS = 20


def busy(scale: Scale, folder: Path, seconds: float) -> Iterator[Row]:
    """With Cipher: during a simulation, and with gradients only."""
    workers = min(WORKERS, scale.workers[0])
    about = {"model": "cipher", "workers": workers}
    scenario = from_data(scale.scenario("cipher", workers, iterations=10**6))  # until it is interrupted
    run = Watch(scale)
    simulate(
        scenario,
        folder / "run",
        device=scale.device,
        checkpoint_every=None,
        interrupted=run.is_over,
        observe=run.observe,
    )
    yield {"what": "simulation", **about, **run.result}
    rounds = fused(*scale.problem("cipher"), workers, scale.batch, torch.device(scale.device))
    with closing(rounds):  # type: ignore[type-var]
        compute = next(rounds)
        timed(scale, compute, 2)
        alone = Watch(scale)
        alone.start()
        timed(scale, compute, ROUNDS if scale.device == "cuda" else 1)
        alone.stop()
    yield {"what": "gradients", **about, **alone.result}


class Watch:
    """Profiles the device for some seconds; in a run, after as many seconds of warm-up."""

    def __init__(self, scale: Scale) -> None:
        self._scale = scale
        on_gpu = scale.device == "cuda"
        self._kind = "CUDA" if on_gpu else "CPU"
        self._profile = profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU])
        self._iterates = self._began = self._ended = 0.0
        self.result: dict[str, float | int] = {}
        """The busy share of time, the seconds, and the number of kernels."""

    def observe(self, progress: Progress) -> None:
        """Process the progress of the run."""
        if progress.iterations and not self._iterates:
            self._iterates = time.perf_counter()

    def is_over(self) -> bool:
        """Whether the profile is complete; it starts after libraries and graphs are set up."""
        window, now = self._scale.window, time.perf_counter()
        if not self._began and self._iterates and now - self._iterates > window:
            self.start()
        elif self._began and not self.result and now - self._began > window:
            self.stop()
        return bool(self.result)

    def start(self) -> None:
        """Start profiling."""
        wait_for(self._scale)
        self._profile.start()
        self._began = time.perf_counter()

    def stop(self) -> None:
        """Stop profiling."""
        wait_for(self._scale)
        seconds = time.perf_counter() - self._began
        self._profile.stop()
        results: Any = self._profile.profiler
        # Raw events: PyTorch's objects take a tenth of a millisecond each.
        events = [each for each in results.kineto_results.events() if each.device_type().name == self._kind]
        kernels = [each for each in events if not each.name().startswith(("Memcpy", "Memset"))]
        covered = union((each.start_ns(), each.start_ns() + each.duration_ns()) for each in kernels)
        self.result = {"busy": covered / 1e9 / seconds, "seconds": seconds, "kernels": len(kernels)}


def union(spans: Iterable[tuple[float, float]]) -> float:
    """The total length of the union of spans (begin, end)."""
    covered, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        covered += max(0.0, end - max(begin, until))
        until = max(until, end)
    return covered
