"""What is kept of samples that come one after another, to train on."""

from __future__ import annotations

import numpy as np

from dlion_sim.learning.partition import Indices


class Newest:
    """Keeps the newest samples, `most` of them at most; None: all."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self.samples: Indices = np.empty(0, np.int64)
        """That are kept, in the order in which they came."""

    def add(self, samples: Indices) -> None:
        """These have come, in that order."""
        kept = np.concatenate([self.samples, samples])
        self.samples = kept if self._most is None else kept[-self._most :]


class Reservoir:
    """Keeps `size` samples, each of all that came with equal probability (Vitter, TOMS 1985, algorithm R)."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._size = size
        self._rng = rng
        self._seen = 0
        self.samples: Indices = np.empty(0, np.int64)
        """That are kept, in no order."""

    def add(self, samples: Indices) -> None:
        """These have come, in that order."""
        room = self._size - len(self.samples)
        self.samples, later = np.concatenate([self.samples, samples[:room]]), samples[room:]
        # The t-th takes a random one of t places, if that is one of the reservoir's; the last to take it stays.
        places = self._rng.integers(0, np.arange(self._seen + len(samples) - len(later), self._seen + len(samples)) + 1)
        taken = places < self._size
        self.samples[places[taken]] = later[taken]
        self._seen += len(samples)
