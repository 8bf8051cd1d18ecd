"""Times of whole iterations on this machine: of a live worker without peers, with alternating batch sizes."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from dlion_sim.assembly import Recorder, Setting
from dlion_sim.learning import GradientExecutor
from dlion_sim.learning.process import frozen_objects, one_core
from dlion_sim.live import Address, Identity, NodeConfig
from dlion_sim.live.connection import listen
from dlion_sim.live.gathering import manifest_of
from dlion_sim.live.machine import Machine
from dlion_sim.live.member import Member
from dlion_sim.live.node import take_part
from dlion_sim.protocol.baseline import FixedBatching
from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.events import Report
from dlion_sim.protocol.worker import Worker
from dlion_sim.results import RunWriter
from dlion_sim.scenario import Cluster, Iid, Reliable, Scenario, SystemSpec, dump

_SELDOM = 1e6
"""Seconds between evaluations: none comes between iterations."""
_ROW = 4
"""Successive iterations of a size; the first one, with memory and caches of another size, does not count."""
_ROUNDS, _SECONDS = 9, 3.0
"""Minimum rounds and time,"""
_FEWEST_ROUNDS, _MOST_SECONDS = 3, 60.0
"""or fewer rounds if these take longer. The very first one does not count: it compiles."""


def alone(scenario: Scenario) -> Scenario:
    """The scenario of a single worker with the same workload."""
    seldom = {"evaluate_every": _SELDOM, "partition": Iid()}
    one = {
        "cluster": Cluster.model_validate({"clouds": [{"name": "here", "workers": [{}]}]}),
        "system": SystemSpec(name="baseline"),
        "transport": Reliable(),
        "workload": scenario.workload.model_copy(update=seldom),
        **dict.fromkeys(("duration", "iterations", "target_accuracy", "target", "prices", "availability")),
    }
    return scenario.model_copy(update=one)


def time_iterations(setting: Setting, sizes: Sequence[int]) -> dict[int, list[float]]:
    """Seconds of iterations of the setting's only worker, by batch size.

    Sizes alternate, so that a busy moment affects all. Everything is as in a live node, without pacing.
    """
    one = setting.worker(0)
    worker = Worker(one.setup, replace(one.choices, batching=_InTurns(sizes, one.setup)))
    with ExitStack() as stack:
        stack.enter_context(one_core())
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="dlion-")))
        listener = stack.enter_context(listen(Address("127.0.0.1", 0)))
        executor = GradientExecutor(setting.model, setting.dataset, setting.device, threads=1, kernels=setting.kernels)
        member = stack.enter_context(
            closing(Member(worker, Machine(executor, worker.replica, setting.sampler(0), None)))
        )
        writer = RunWriter.create(folder / "run", scenario_yaml=dump(setting.scenario), manifest=manifest_of(setting))
        stack.callback(writer.close)
        stopwatch = _Stopwatch(writer, sizes)
        config = NodeConfig(
            0, [Address(*listener.getsockname())], Identity.of_secret(secrets.token_bytes(), 0), folder, listen=listener
        )
        stack.enter_context(frozen_objects())
        asyncio.run(
            take_part(setting, config, listener, member, stopwatch, lambda driver: stopwatch.call(driver.interrupt))
        )
    return stopwatch.times


class _InTurns(FixedBatching):
    """Every size for a few iterations, repeatedly."""

    def __init__(self, sizes: Sequence[int], setup: Setup) -> None:
        super().__init__(self.Parameters(), setup)
        self._sizes = sizes

    def batch_size(self, iteration: int) -> int:
        return self._sizes[iteration // _ROW % len(self._sizes)]


class _Stopwatch(Recorder):
    """A recorder that collects times of iterations, by batch size, until there are enough."""

    def __init__(self, writer: RunWriter, sizes: Sequence[int], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(writer, [0])
        self.times: dict[int, list[float]] = {size: [] for size in sizes}
        self._rows = len(sizes)
        self._clock = clock
        self._former = 0.0
        self._began = 0.0
        self._enough: Callable[[], None] = lambda: None

    def call(self, enough: Callable[[], None]) -> None:
        """Call `enough` when there are enough times."""
        self._enough = enough

    def iteration(self, worker: int, report: Report, now: float) -> None:
        super().iteration(worker, report, now)
        took, self._former = now - self._former, now
        row, place = divmod(report.iteration - 1, _ROW)
        rounds, left = divmod(row, self._rows)
        if rounds == 0:
            self._began = self._clock()
            return
        if place:
            self.times[report.batch_size].append(took)
        if left == self._rows - 1 and place == _ROW - 1:
            seconds = self._clock() - self._began
            if (rounds >= _ROUNDS and seconds > _SECONDS) or (rounds >= _FEWEST_ROUNDS and seconds > _MOST_SECONDS):
                self._enough()
