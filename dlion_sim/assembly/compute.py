"""The time model of a worker's machine: its computations, and its waits for input."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dlion_sim.scenario import Compute, Input


class Stall(NamedTuple):
    """Seconds that a computation waits for its samples."""

    prep: float
    """The part due to preparation."""
    fetch: float
    """The part that reading adds."""

    @property
    def seconds(self) -> float:
        return self.prep + self.fetch


class InputPipeline:
    """Prepares each batch from the time on at which the one before was taken; a computation waits for the rest.

    Preparation of the first one begins at `since` (s after the run's start). Reading overlaps with the preparation of
    earlier samples. The first `shard_samples` are read from the disk, and later ones if they are not in the cache.
    """

    def __init__(self, spec: Input, shard_samples: int, since: float = 0.0) -> None:
        self._input = spec
        self._shard_samples = shard_samples
        self._taken = 0
        """Number of samples."""
        self._since = since
        """The time at which the last batch was taken."""

    def take(self, batch_size: int, now: float) -> Stall:
        """Take the next batch at `now` (s after the run's start); returns the wait for it."""
        prepared = self._input.preparing(batch_size)
        read = self._input.reading(batch_size, self._taken, self._shard_samples)
        prep = max(0.0, self._since + prepared - now)
        fetch = max(0.0, self._since + max(prepared, read) - now) - prep
        self._taken += batch_size
        self._since = now + prep + fetch
        return Stall(prep, fetch)


class ComputeDevice:
    """A machine on which b samples take T(b) = alpha + beta * b / cores seconds, while its cores may change.

    `alpha` is in seconds, `beta` in core-seconds per sample. With noise, each computation's time is multiplied by a
    lognormal factor of median 1. Without a `pipeline` it never waits for samples.
    """

    def __init__(
        self,
        compute: Compute,
        *,
        alpha: float,
        beta: float,
        rng: np.random.Generator,
        pipeline: InputPipeline | None = None,
    ) -> None:
        self._compute = compute
        self._alpha = alpha
        self._beta = beta
        self._rng = rng
        self._pipeline = pipeline

    def seconds(self, batch_size: int, start: float) -> float:
        """Duration of a computation that begins at `start` (s after the run's start); infinite if its cores never
        return."""
        factor = math.exp(self._compute.noise * self._rng.standard_normal()) if self._compute.noise else 1.0
        begin = start + self._alpha * factor
        return self._compute.cores.finish_time(begin, self._beta * batch_size * factor) - start

    def feed(self, batch_size: int, now: float) -> Stall | None:
        """The wait for the next batch, taken at `now` (s after the run's start); None without a pipeline."""
        return self._pipeline.take(batch_size, now) if self._pipeline else None
