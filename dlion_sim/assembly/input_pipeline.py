"""How long a worker's machine waits for its samples."""

from __future__ import annotations

from typing import NamedTuple

from dlion_sim.scenario import Input


class Stall(NamedTuple):
    """Seconds that a computation waits for its samples."""

    prep: float
    """That it would wait too if they were all in memory."""
    fetch: float
    """What reading them adds."""

    @property
    def seconds(self) -> float:
        return self.prep + self.fetch


class InputPipeline:
    """Gets batches ready, each from when the one before was taken: all that takes longer than until the next is due.

    The first one it gets ready from `since` (s after the run's start) on.

    Samples are read while those before are prepared. The first `shard_samples` are all read from the disk, of later
    ones what is not in the cache.
    """

    def __init__(self, spec: Input, shard_samples: int, since: float = 0.0) -> None:
        self._input = spec
        self._shard_samples = shard_samples
        self._taken = 0
        """Samples so far."""
        self._since = since
        """When the last batch was taken, and the next begun."""

    def take(self, batch_size: int, now: float) -> Stall:
        """Take the next batch, `now` seconds after the run's start, and wait for it if it is not ready."""
        prepared = self._input.preparing(batch_size)
        read = self._input.reading(batch_size, self._taken, self._shard_samples)
        prep = max(0.0, self._since + prepared - now)
        fetch = max(0.0, self._since + max(prepared, read) - now) - prep
        self._taken += batch_size
        self._since = now + prep + fetch
        return Stall(prep, fetch)
