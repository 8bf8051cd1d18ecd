"""Which entries of a gradient to send.

Max-N (DLion, HPDC'21) selects the entries within N percent of their variable's maximum. An entry's normalised
magnitude is r = |g| / max|g| over its own variable, so that selecting by N is one threshold for all variables,
r >= 1 - N/100, and the largest N that fits a budget of m entries has the m-th largest r as threshold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dlion_sim.learning.flat import Layout
from dlion_sim.protocol.exchange import compaction

_SAMPLE = 2**13
"""The size of the sample from which a lower bound is estimated."""
_LEAST = torch.finfo(torch.float32).tiny


def ranked(gradient: Tensor, layout: Layout | None = None) -> Ranking | SortedRanking:
    """The entries by magnitude: by compiled code on a CPU, and where they are on a GPU."""
    return (Ranking if gradient.device.type == "cpu" else SortedRanking)(gradient, layout)


class Ranking:
    """On a CPU, the entries of a gradient [P] by magnitude, normalised by variables if there is a `layout`.

    As few as possible are compared one by one. Entries whose magnitude is zero or NaN are never selected,
    nor is anything of a variable that has infinities. Raises ValueError for a gradient that is not laid out so.
    """

    def __init__(self, gradient: Tensor, layout: Layout | None = None) -> None:
        if layout and gradient.shape != (layout.size,):  # compiled code does not check bounds
            raise ValueError(f"a gradient {list(gradient.shape)} is no gradient of {layout.size} parameters")
        self._gradient = gradient.numpy()
        self._ends = _ends(layout) if layout else np.array([len(self._gradient)])
        self._maxima = compaction.maxima(self._gradient, self._ends) if layout else np.ones(1, np.float32)
        self._bound = float("inf")
        """All entries of at least this magnitude have been found: see `_found`."""
        self._found = np.empty(0, np.int32), np.empty(0, np.float32), np.zeros_like(self._ends)

    def thresholds(self, counts: Sequence[int]) -> list[float]:
        """For each count the smallest threshold that at most `count` entries reach, as near to it as ties allow.

        Entries that tie are selected together or not at all. A count of 0 gives infinity, one of P or more gives 0.
        """
        size = len(self._gradient)
        self._find_at_least(max((count for count in counts if count < size), default=0))
        _, values, ends = self._found
        found = compaction.thresholds(values, ends, self._maxima, np.array(counts, np.int64)).tolist()
        return [0.0 if count >= size else threshold for count, threshold in zip(counts, found, strict=True)]

    def selections(self, thresholds: Sequence[float]) -> dict[float, tuple[Tensor, Tensor]]:
        """By threshold, the indices [m] (int32, increasing) and values [m] of the entries that reach it."""
        ascending = sorted(set(thresholds))
        self._lower_bound_to(min(ascending, default=float("inf")))
        found, chosen = self._found, {}
        for threshold in ascending:
            found = compaction.at_least(*found, self._maxima, threshold)  # the one before holds them all
            chosen[threshold] = torch.from_numpy(found[0]), torch.from_numpy(found[1])
        return chosen

    def top(self, count: int) -> Tensor:
        """Indices (int32, increasing) of the `count` entries of greatest magnitude, or of all that are not zero."""
        self._find_at_least(count)
        indices = self._found[0]
        if len(indices) > count:
            magnitudes = compaction.normalised(*self._found[1:], self._maxima)
            indices = np.sort(indices[np.argpartition(magnitudes, -count)[-count:]])
        return torch.from_numpy(indices)

    def _find_at_least(self, count: int) -> None:
        """Lower the bound until at least `count` entries are found, if there are as many."""
        if count > 0:
            self._lower_bound_to(self._guess(count))
            if len(self._found[0]) < count:
                self._lower_bound_to(0.0)

    def _guess(self, count: int) -> float:
        """A magnitude that at least `count` entries probably reach, and few more."""
        stride = len(self._gradient) // _SAMPLE
        if stride <= 1:  # All are compared sooner than a sample.
            return 0.0
        expected = count / stride
        of_sample = int(expected + 4 * math.sqrt(expected)) + 16
        return float(compaction.lower_bound(self._gradient, self._ends, self._maxima, stride, of_sample))

    def _lower_bound_to(self, reach: float) -> None:
        if reach < self._bound:
            self._found = compaction.reaching(self._gradient, self._ends, self._maxima, reach)
            self._bound = reach


class SortedRanking:
    """As `Ranking`, of a gradient [P] on any device; selected entries stay there, and only numbers are read.

    On a GPU, sorting all costs less than a copy.
    """

    def __init__(self, gradient: Tensor, layout: Layout | None = None) -> None:
        if layout and gradient.shape != (layout.size,):
            raise ValueError(f"a gradient {list(gradient.shape)} is no gradient of {layout.size} parameters")
        self._gradient = gradient
        magnitudes = gradient.abs()
        if layout:
            variables = [variable for variable in magnitudes.split_with_sizes(layout.sizes) if len(variable)]
            magnitudes = torch.cat([variable / variable.amax().clamp_min(_LEAST) for variable in variables])
        positive = torch.where(magnitudes > 0, magnitudes, 0.0)  # NaN is not positive.
        self._negated, self._order = positive.neg().sort(stable=True)
        self._reaching: dict[float, int] = {}
        """How many entries reach a threshold."""

    def thresholds(self, counts: Sequence[int]) -> list[float]:
        size = len(self._negated)
        wanted = sorted({count for count in counts if count < size})
        found = {count: 0.0 for count in counts if count >= size}
        if wanted:
            first_left_out = torch.cat([self._negated[count : count + 1] for count in wanted])
            reaching = torch.searchsorted(self._negated, first_left_out)
            least = torch.where(reaching > 0, -self._negated[(reaching - 1).clamp_min(0)], torch.inf)
            for count, (threshold, number) in zip(
                wanted, torch.stack([least.double(), reaching.double()], dim=1).tolist(), strict=True
            ):
                found[count], self._reaching[threshold] = threshold, int(number)
        return [found[count] for count in counts]

    def selections(self, thresholds: Sequence[float]) -> dict[float, tuple[Tensor, Tensor]]:
        distinct = sorted(set(thresholds))
        unknown = [threshold for threshold in distinct if threshold not in self._reaching]
        if unknown:
            numbers = torch.stack([(self._negated <= -_reached_by(threshold)).sum() for threshold in unknown])
            self._reaching |= zip(unknown, numbers.tolist(), strict=True)
        chosen = {}
        for threshold in distinct:
            indices = self._order[: self._reaching[threshold]].sort().values
            chosen[threshold] = indices.to(torch.int32), self._gradient[indices]
        return chosen

    def top(self, count: int) -> Tensor:
        number = int((self._negated[:count] < 0).sum())
        return self._order[:number].sort().values.to(torch.int32)


def indices_of(mask: Tensor) -> Tensor:
    """The indices at which a mask is set [m] (int32, increasing)."""
    if mask.device.type == "cpu":
        return torch.from_numpy(np.flatnonzero(mask.numpy()).astype(np.int32))  # several times as fast as torch's
    return mask.nonzero().squeeze(1).to(torch.int32)


@lru_cache
def _ends(layout: Layout) -> npt.NDArray[np.int64]:
    """The ends of a layout's variables."""
    return np.cumsum(layout.sizes)


def _reached_by(threshold: float) -> float:
    """The least positive float32 that is as large."""
    least = max(np.float32(threshold), np.nextafter(np.float32(0), np.float32(1)))
    return float(least if float(least) >= threshold else np.nextafter(least, np.float32(np.inf)))
