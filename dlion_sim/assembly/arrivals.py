"""Which samples come to a worker, in which order, and when."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from dlion_sim.errors import InputError
from dlion_sim.learning.partition import Indices
from dlion_sim.scenario import Schedule

Floats = npt.NDArray[np.float64]

_ROUNDING = 1e-9
"""Of a sample: sums of floats may just miss a whole one."""


@dataclass(frozen=True)
class Arrivals:
    """The samples [N] that come to a worker, and when each does (s) [N], in order; the first ones are there at 0 s."""

    samples: Indices
    times: Floats
    initial: int
    """How many these are."""

    def by(self, now: float) -> int:
        """How many have come by a time (s)."""
        return int(np.searchsorted(self.times, now, side="right"))


def arrival_times(rate: Schedule, most: int, end: float) -> Floats:
    """When samples come at a rate (1/s), in seconds: `most` of them, or those that do by `end`.

    The k-th comes when the integral of the rate has reached k.
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
    """The samples that come at some times (s) [N]: of a class by the shares [N, classes], then of its members the next.

    Raises InputError where a class has no sample left, or nothing may come.
    """
    cumulated = np.cumsum(shares(times), axis=1)
    if len(nothing := np.flatnonzero(~(cumulated[:, -1] > 0))):
        raise InputError(f"no class may come at {times[nothing[0]]:g} s", allowed="a class with a weight")
    # Scaled by the sum, which is 1 but for rounding: a class without a share is never drawn.
    classes = (rng.random(len(times))[:, None] * cumulated[:, -1:] < cumulated).argmax(axis=1)
    samples = np.empty(len(times), np.int64)
    for number, own in enumerate(members):
        places = np.flatnonzero(classes == number)
        if len(places) > len(own):
            last = times[places[len(own)]]
            problem = f"the {len(own)} samples of class {number} have all come by {last:g} s"
            raise InputError(problem, allowed="fewer arrivals or initial samples, or a shorter duration")
        samples[places] = rng.permutation(own)[: len(places)]
    return samples
