"""Drawing batches of a worker's samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


class BatchSampler:
    """Draws batches of a worker's samples in epochs: each is a new random order of the whole `shard`.

    A batch may begin in one epoch and end in the next. State is plain data: a sampler can be pickled.
    """

    def __init__(self, shard: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
        self.shard = shard
        self._rng = rng
        self._rest = rng.permutation(shard)

    def take(self, size: int) -> npt.NDArray[np.int64]:
        """The next `size` sample indices. Raises ValueError unless 1 <= size <= samples of the shard."""
        if not 1 <= size <= len(self.shard):
            raise ValueError(f"a batch of {size} samples cannot be taken from a shard of {len(self.shard)}")
        batch, self._rest = self._rest[:size], self._rest[size:]
        if missing := size - len(batch):
            epoch = self._rng.permutation(self.shard)
            batch, self._rest = np.concatenate([batch, epoch[:missing]]), epoch[missing:]
        return batch
