"""The stream of one worker: which samples arrive when, and batches of those that have."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from dlion_sim.errors import InputError
from dlion_sim.learning import Newest, Reservoir
from dlion_sim.learning.partition import Indices
from dlion_sim.scenario import Schedule

Floats = npt.NDArray[np.float64]

_ROUNDING = 1e-9
"""Of a sample: sums of floats may just miss a whole one."""


@dataclass(frozen=True)
class Arrivals:
    """Samples [N] that arrive at a worker, and their times (s) [N], in order."""

    samples: Indices
    times: Floats
    initial: int
    """The number of samples that are there from the start."""

    def by(self, now: float) -> int:
        return int(np.searchsorted(self.times, now, side="right"))


class StreamSampler:
    """Takes random batches from the samples that a worker has received and keeps. Its state is plain data."""

    def __init__(self, arrivals: Arrivals, kept: Newest | Reservoir, rng: np.random.Generator) -> None:
        self._arrivals = arrivals
        self._kept = kept
        self._rng = rng
        self._received = arrivals.initial
        kept.add(self.shard)

    @property
    def shard(self) -> Indices:
        return self._arrivals.samples[: self._arrivals.initial]

    def receive(self, now: float) -> Indices:
        """Receive the samples that have arrived by `now` (s) since the last call, and return them."""
        before, self._received = self._received, max(self._received, self._arrivals.by(now))
        come = self._arrivals.samples[before : self._received]
        self._kept.add(come)
        return come

    def take(self, size: int) -> Indices:
        """A batch of kept samples, each at most once unless `size` exceeds their number."""
        return self._rng.choice(self._kept.samples, size, replace=size > len(self._kept.samples))


def arrival_times(rate: Schedule, most: int, end: float) -> Floats:
    """Arrival times (s) of samples at a rate (1/s): of `most` samples, or of those by `end`.

    The k-th arrives when the integral of the rate has reached k.
    """
    times: list[Floats] = [np.empty(0)]
    done, come = 0.0, 0
    steps = chain([(0.0, rate.steps[0][1])], rate.changes(), [(math.inf, 0.0)])
    for (begin, value), (until, _) in pairwise(steps):
        if come >= most or begin >= end:
            break
        reached = done + value * (min(until, end) - begin) if value else done
        now = math.floor(min(reached + _ROUNDING, most))
        numbers = np.arange(come + 1, now + 1)
        times.append(begin + np.maximum(numbers - done, 0.0) / (value or 1.0))
        done, come = reached, now
    return np.concatenate(times)


def by_class(
    members: list[Indices], times: Floats, shares: Callable[[Floats], Floats], rng: np.random.Generator
) -> Indices:
    """The samples that arrive at `times` (s) [N]: a class is drawn by `shares` [N, classes], then its next member.

    Raises InputError if a class has no sample left, or no class may arrive.
    """
    cumulated = np.cumsum(shares(times), axis=1)
    if len(nothing := np.flatnonzero(~(cumulated[:, -1] > 0))):
        raise InputError(f"no class may arrive at {times[nothing[0]]:g} s", allowed="a class with a weight")
    # Scaled by the sum, which is 1 but for rounding: a class without a share is never drawn.
    classes = (rng.random(len(times))[:, None] * cumulated[:, -1:] < cumulated).argmax(axis=1)
    samples = np.empty(len(times), np.int64)
    for number, own in enumerate(members):
        places = np.flatnonzero(classes == number)
        if len(places) > len(own):
            last = times[places[len(own)]]
            problem = f"the {len(own)} samples of class {number} have all arrived by {last:g} s"
            raise InputError(problem, allowed="fewer arrivals or initial samples, or a shorter duration")
        samples[places] = rng.permutation(own)[: len(places)]
    return samples
