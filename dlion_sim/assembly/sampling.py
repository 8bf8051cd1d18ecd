"""Which samples a worker takes next of what has come to it."""

from __future__ import annotations

import numpy as np

from dlion_sim.assembly.arrivals import Arrivals
from dlion_sim.learning import Newest, Reservoir
from dlion_sim.learning.partition import Indices


class StreamSampler:
    """Takes batches at random from what a worker has received by then and keeps.

    State is plain data: a sampler can be pickled.
    """

    def __init__(self, arrivals: Arrivals, kept: Newest | Reservoir, rng: np.random.Generator) -> None:
        self._arrivals = arrivals
        self._kept = kept
        self._rng = rng
        self._received = arrivals.initial
        kept.add(self.shard)

    @property
    def shard(self) -> Indices:
        """The samples that are there from the start."""
        return self._arrivals.samples[: self._arrivals.initial]

    def receive(self, now: float) -> Indices:
        """The samples that have come since the last time, up to `now` (s); from here on batches are of these too."""
        before, self._received = self._received, max(self._received, self._arrivals.by(now))
        come = self._arrivals.samples[before : self._received]
        self._kept.add(come)
        return come

    def take(self, size: int) -> Indices:
        """So many of those that are kept, each at most once unless `size` is more than there are."""
        return self._rng.choice(self._kept.samples, size, replace=size > len(self._kept.samples))
