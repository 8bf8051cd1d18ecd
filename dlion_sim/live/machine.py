"""A worker's machine: computes gradients, in the time of the real machine or of the modelled one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from torch import Tensor

from dlion_sim.assembly import ComputeDevice, Stall, StreamSampler
from dlion_sim.learning import BatchSampler, Evaluator, FusedGradientExecutor, GradientExecutor, Replica, Score

Samples = npt.NDArray[np.int64]


@dataclass
class Lateness:
    """How often, and by how many seconds, real computations took longer than the modelled ones."""

    computations: int = 0
    late: int = 0
    seconds_late: float = 0.0
    most_seconds_late: float = 0.0

    def note(self, seconds_late: float) -> None:
        """A computation ended so many seconds too late; negative: in time."""
        self.computations += 1
        if seconds_late > 0:
            self.late += 1
            self.seconds_late += seconds_late
            self.most_seconds_late = max(self.most_seconds_late, seconds_late)

    @classmethod
    def of_all(cls, machines: Iterable[Lateness]) -> Lateness:
        """That of several machines together."""
        total = cls()
        for one in machines:
            total.computations += one.computations
            total.late += one.late
            total.seconds_late += one.seconds_late
            total.most_seconds_late = max(total.most_seconds_late, one.most_seconds_late)
        return total


@dataclass(frozen=True)
class Computed:
    """A loss, its gradient [P], and the seconds that they count as."""

    loss: float
    gradient: Tensor
    seconds: float
    stall: Stall | None = None
    """The modelled machine's wait for samples within these."""
    arrivals: tuple[Score, int] | None = None
    """The score on a stream's samples that had arrived before, and their number."""


class Machine:
    """Computes a worker's gradients, one after another, in a thread.

    With a `pace`, a gradient is held back until its modelled time is over, so that many nodes fit on one machine that
    is faster than the modelled ones. The replica must not be written meanwhile.
    """

    def __init__(
        self,
        executor: GradientExecutor | FusedGradientExecutor,
        replica: Replica,
        sampler: BatchSampler | StreamSampler,
        pace: ComputeDevice | None,
        tester: Evaluator | None = None,
    ) -> None:
        self._executor = executor
        self._replica = replica
        self._sampler = sampler
        self._pace = pace
        self._tester = tester
        # A thread of its own waits more exactly than the event loop does, which counts in milliseconds.
        self._thread = ThreadPoolExecutor(1, "machine")
        self._closed = threading.Event()
        self.lateness = Lateness()

    @property
    def is_paced(self) -> bool:
        """Whether it takes as long as is modelled."""
        return self._pace is not None

    async def gradient(self, batch_size: int, start: float, ago: float) -> Computed:
        """The gradient of the next `batch_size` samples; before that, the `tester` scores what of a stream has come.

        A modelled computation begins `start` seconds since the start of the run, which was so many seconds ago.
        """
        began = time.monotonic() - ago
        stall = self._pace.feed(batch_size, start) if self._pace else None
        arrivals = await self._receive(start)
        computed = await self._timed(self._sampler.take(batch_size), start, began, stall)
        return replace(computed, arrivals=arrivals)

    async def _receive(self, now: float) -> tuple[Score, int] | None:
        """Test the replica on samples that have arrived, and make them available for training."""
        if not isinstance(self._sampler, StreamSampler) or self._tester is None:
            return None
        came = self._sampler.receive(now)
        if not len(came):
            return None
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._tester.score, self._replica, came), len(came)

    async def profile(self, batch_sizes: Sequence[int], start: float, ago: float) -> tuple[tuple[int, float], ...]:
        """(batch size, seconds) of a gradient of each of these sizes, one after another; takes none of the samples."""
        measurements = []
        began = time.monotonic() - ago
        for batch_size in batch_sizes:
            seconds = (await self._timed(self._any_samples(batch_size), start, began)).seconds
            measurements.append((batch_size, seconds))
            start, began = start + seconds, began + seconds
        return tuple(measurements)

    def warm_up(self, batch_size: int) -> Computed:
        """Compute a gradient at once, since the first one takes longer than all others."""
        return self._compute(self._any_samples(batch_size), None, 0.0)

    def _any_samples(self, count: int) -> Samples:
        return np.resize(self._sampler.shard, count)

    def close(self) -> None:
        """Drop a gradient that is held back, and end the threads."""
        self._closed.set()
        self._thread.shutdown(cancel_futures=True)
        if self._tester:
            self._tester.close()
        self._executor.close()

    async def _timed(self, samples: Samples, start: float, began: float, stall: Stall | None = None) -> Computed:
        fed_at = stall.seconds if stall else 0.0
        due = None if self._pace is None else fed_at + self._pace.seconds(len(samples), start + fed_at)
        loop = asyncio.get_running_loop()
        return replace(await loop.run_in_executor(self._thread, self._compute, samples, due, began), stall=stall)

    def _compute(self, samples: Samples, due: float | None, began: float) -> Computed:
        """`began` is when the modelled computation did; a real one begins now."""
        now = time.monotonic()
        loss, gradient = self._executor.result(self._executor.submit(self._replica, samples))
        if due is None:
            return Computed(loss, gradient, time.monotonic() - now)
        took = time.monotonic() - began
        self.lateness.note(took - due)
        self._closed.wait(min(max(due - took, 0.0), threading.TIMEOUT_MAX))
        return Computed(loss, gradient, max(due, took))
