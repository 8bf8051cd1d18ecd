"""How long a worker's machine takes for a gradient."""

from __future__ import annotations

import math

import numpy as np

from dlion_sim.assembly.input_pipeline import InputPipeline, Stall
from dlion_sim.scenario import Compute


class ComputeDevice:
    """A machine on which b samples take T(b) = alpha + beta * b / cores seconds, while its cores may change.

    `alpha` is in seconds, `beta` in core-seconds per sample. With noise, each computation's time is multiplied by a
    lognormal factor of median 1. Without a `pipeline` it has its samples whenever it needs them.
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
        """Time of a computation `start` seconds after the run's start; infinite if its cores are gone for good."""
        factor = math.exp(self._compute.noise * self._rng.standard_normal()) if self._compute.noise else 1.0
        begin = start + self._alpha * factor
        return self._compute.cores.finish_time(begin, self._beta * batch_size * factor) - start

    def feed(self, batch_size: int, now: float) -> Stall | None:
        """The wait for the next batch, which is taken `now` (s after the run's start); None without a pipeline."""
        return self._pipeline.take(batch_size, now) if self._pipeline else None
