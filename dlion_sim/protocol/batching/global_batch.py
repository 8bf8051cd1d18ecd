"""The global batch size over the iterations (DLion, weighted dynamic batching: the GBS controller)."""

from __future__ import annotations

from bisect import bisect_right


class GlobalBatchSchedule:
    """GBS grows by addition up to a first cap, then by multiplication up to a second one, once every epoch.

    Small batches early are good for accuracy; larger ones later replace a decay of the learning rate. An epoch is as
    many samples as all workers' shards hold, so the GBS is a function of the iteration alone and needs no agreement.
    A start above a cap is kept as it is.

    `start`, `increment`, `samples` are in samples; the caps are fractions of `samples`.
    """

    def __init__(
        self, *, start: int, increment: int, factor: float, warmup_cap: float, cap: float, samples: int
    ) -> None:
        self._increment = increment
        self._factor = factor
        self._warmup_cap = warmup_cap * samples
        self._cap = max(start, int(cap * samples))
        self._samples = samples
        self._begins = [0]
        self._sizes = [start]

    def at(self, iteration: int) -> int:
        """The global batch size of `iteration` (0, 1, ...)."""
        while self._sizes[-1] < self._cap and iteration >= (end := self._end_of_last()):
            self._begins.append(end)
            self._sizes.append(self._grown(self._sizes[-1]))
        return self._sizes[bisect_right(self._begins, iteration) - 1]

    def _end_of_last(self) -> int:
        return self._begins[-1] + -(-self._samples // self._sizes[-1])

    def _grown(self, size: int) -> int:
        grown = size + self._increment if size < self._warmup_cap else int(size * self._factor)
        return min(max(grown, size + 1), self._cap)
