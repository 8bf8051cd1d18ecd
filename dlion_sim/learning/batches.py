"""Drawing batches of a worker's samples, and keeping those of a stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dlion_sim.learning.partition import Indices


class BatchSampler:
    """Draws batches of a worker's samples in epochs: each is a new random order of the whole `shard`.

    A batch may begin in one epoch and end in the next. State is plain data: a sampler can be pickled.
    """

    def __init__(self, shard: Indices, rng: np.random.Generator) -> None:
        self.shard = shard
        self._rng = rng
        self._rest = self._epoch()

    def take(self, size: int) -> Indices:
        """The next `size` sample indices. Raises ValueError unless 1 <= size <= samples of the shard."""
        if not 1 <= size <= len(self.shard):
            raise ValueError(f"a batch of {size} samples cannot be taken from a shard of {len(self.shard)}")
        batch, self._rest = self._rest[:size], self._rest[size:]
        if missing := size - len(batch):
            epoch = self._epoch()
            batch, self._rest = np.concatenate([batch, epoch[:missing]]), epoch[missing:]
        return batch.astype(np.int64)

    def _epoch(self) -> NDArray[np.int32]:
        """The shard in a new order, in half the memory: there may be a hundred thousand samplers."""
        return self._rng.permutation(self.shard.astype(np.int32))


class Newest:
    """Keeps the newest samples, `most` of them at most; None: all."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self.samples: Indices = np.empty(0, np.int64)
        """The kept samples, in the order of arrival."""

    def add(self, samples: Indices) -> None:
        kept = np.concatenate([self.samples, samples])
        self.samples = kept if self._most is None else kept[-self._most :]


class Reservoir:
    """Keeps `size` samples, each arrival with equal probability (Vitter, TOMS 1985, algorithm R)."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._size = size
        self._rng = rng
        self._seen = 0
        self.samples: Indices = np.empty(0, np.int64)
        """The kept samples, in no order."""

    def add(self, samples: Indices) -> None:
        room = self._size - len(self.samples)
        self.samples, later = np.concatenate([self.samples, samples[:room]]), samples[room:]
        # The t-th arrival takes a random one of t places, if that is in the reservoir; the last one stays.
        places = self._rng.integers(0, np.arange(self._seen + len(samples) - len(later), self._seen + len(samples)) + 1)
        taken = places < self._size
        self.samples[places[taken]] = later[taken]
        self._seen += len(samples)
