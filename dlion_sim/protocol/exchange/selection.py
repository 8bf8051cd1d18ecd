"""Which entries of a gradient to send.

Max-N (DLion, HPDC'21) selects the entries within N percent of their variable's maximum. An entry's normalised
magnitude is r = |g| / max|g| over its own variable, so that selecting by N is one threshold for all variables,
r >= 1 - N/100, and the largest N that fits a budget of m entries has the m-th largest r as threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numba import njit
from torch import Tensor

from dlion_sim.learning.flat import Layout

_SAMPLE = 2**15
"""Entries from which is guessed how far down to look."""


class Ranking:
    """The entries of a gradient [P] by magnitude, normalised if there is a `layout` by whose variables to do so.

    As few as possible are ever looked at one by one. Entries whose magnitude is zero or no number are never selected,
    nor is anything of a variable that has infinities.
    """

    def __init__(self, gradient: Tensor, layout: Layout | None = None) -> None:
        self._device = gradient.device
        self._gradient = gradient.cpu().numpy()
        self._ends = np.cumsum(layout.sizes) if layout else np.array([len(self._gradient)])
        self._maxima = _maxima(self._gradient, layout) if layout else np.ones(1, np.float32)
        self._reach = float("inf")
        """Entries of at least this magnitude are found: indices, increasing, magnitudes and values."""
        self._found = np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.float32)

    def thresholds(self, counts: Sequence[int]) -> list[float]:
        """For each count the smallest threshold that at most `count` entries reach, as near to it as ties allow.

        Entries that tie are selected together or not at all. A count of 0 gives infinity, one of P or more gives 0.
        """
        size = len(self._gradient)
        self._look_for(max((count for count in counts if count < size), default=0))
        found = iter(_thresholds(self._found[1], [count for count in counts if count < size]))
        return [0.0 if count >= size else next(found) for count in counts]

    def selections(self, thresholds: Sequence[float]) -> dict[float, tuple[Tensor, Tensor]]:
        """By threshold, the indices [m] (int32, increasing) and values [m] of the entries that reach it."""
        ascending = sorted(set(thresholds))
        self._look_down_to(min(ascending, default=float("inf")))
        found, chosen = self._found, {}
        for threshold in ascending:
            found = _at_least(*found, threshold)  # each from the one before, as it holds them all
            indices, values = (torch.from_numpy(array).to(self._device) for array in (found[0], found[2]))
            chosen[threshold] = indices, values
        return chosen

    def top(self, count: int) -> Tensor:
        """Indices (int32, increasing) of the `count` entries of greatest magnitude, or of all that are not zero."""
        self._look_for(count)
        indices, magnitudes, _ = self._found
        if len(indices) > count:
            indices = np.sort(indices[np.argpartition(magnitudes, -count)[-count:]])
        return torch.from_numpy(indices).to(self._device)

    def _look_for(self, count: int) -> None:
        """Look as far down as to find `count` entries, if there are as many."""
        if count > 0:
            self._look_down_to(self._guess(count))
            if len(self._found[0]) < count:
                self._look_down_to(0.0)

    def _guess(self, count: int) -> float:
        """A magnitude that at least `count` entries probably reach, and few more."""
        size = len(self._gradient)
        sample = _sample(self._gradient, self._ends, self._maxima, max(1, size // _SAMPLE))
        expected = count * len(sample) / size
        rank = int(expected + 4 * np.sqrt(expected)) + 16
        return float(np.partition(sample, -rank)[-rank]) if rank <= len(sample) else 0.0

    def _look_down_to(self, reach: float) -> None:
        if reach < self._reach:
            self._found = _reaching(self._gradient, self._ends, self._maxima, np.float32(reach))
            self._reach = reach


def indices_of(mask: Tensor) -> Tensor:
    """Where a mask is set: indices [m] (int32, increasing)."""
    if mask.device.type == "cpu":
        return torch.from_numpy(np.flatnonzero(mask.numpy()).astype(np.int32))  # several times as fast as torch's
    return mask.nonzero().squeeze(1).to(torch.int32)


def _maxima(gradient: npt.NDArray[np.float32], layout: Layout) -> npt.NDArray[np.float32]:
    """The greatest magnitude of each variable; the least positive number where that is zero."""
    extremes = [torch.aminmax(variable) for variable in layout.views(torch.from_numpy(gradient))]
    tiny = np.finfo(np.float32).tiny
    return np.array([max(-float(low), float(high), tiny) for low, high in extremes], np.float32)


_CHUNK = 4096
"""Entries that are looked at together, few enough to stay in the core's first cache."""
_RARE = 12
"""Where fewer than one in so many is wanted, it pays to look for whom to leave out together."""
_SHIFT = 15
"""Trailing bits to ignore: about 32,000 buckets between 0 and 1, each within 0.2 to 0.4 % of one value."""


def _thresholds(values: npt.NDArray[np.float32], counts: Sequence[int]) -> list[float]:
    """For each count the smallest of the positive `values` that at most `count` of them reach; infinity if none is.

    Values are counted by their leading bits, which are in the floats' own order. So a rank is known to lie in one
    bucket, and only those buckets' few values are put in order.
    """
    size = len(values)
    up_to = np.cumsum(_bucket_counts(values))
    buckets = {count: int(np.searchsorted(up_to, size - count, side="right")) for count in counts if 0 < count < size}
    wanted = np.zeros(len(up_to), np.bool_)
    wanted[list(buckets.values())] = True
    ordered = np.sort(_in_buckets(values, wanted))

    def threshold(count: int) -> float:
        if count not in buckets:
            return float(values.min()) if count and size else float("inf")
        low, high = (np.array([buckets[count], buckets[count] + 1], np.int32) << _SHIFT).view(np.float32)
        inside = ordered[np.searchsorted(ordered, low) : np.searchsorted(ordered, high)]
        above = size - int(up_to[buckets[count]])
        least = inside[len(inside) - (count - above)]
        if above + len(inside) - int(np.searchsorted(inside, least)) <= count:
            return float(least)
        larger = inside[np.searchsorted(inside, least, side="right") :]
        if not len(larger):
            larger = values[values >= high]
        return float(larger.min()) if len(larger) else float("inf")

    return [threshold(count) for count in counts]


# Compiled, as one pass each over memory where array operations would take several.


@njit(cache=True)
def _sample(gradient: Any, ends: Any, maxima: Any, stride: int) -> Any:
    """Magnitudes of every `stride`-th entry, those that are no number as 0."""
    magnitudes = np.zeros((len(gradient) + stride - 1) // stride, np.float32)
    variable = 0
    for place in range(len(magnitudes)):
        index = place * stride
        while index >= ends[variable]:
            variable += 1
        magnitude = abs(gradient[index]) / maxima[variable]
        if magnitude > 0:
            magnitudes[place] = magnitude
    return magnitudes


@njit(cache=True)
def _reaching(gradient: Any, ends: Any, maxima: Any, reach: Any) -> Any:
    """Indices, magnitudes and values of the entries of magnitude `reach` or more, but not of 0."""
    indices = np.empty(len(gradient) + 8, np.int32)
    magnitudes, values = np.empty(len(gradient) + 8, np.float32), np.empty(len(gradient) + 8, np.float32)
    hits = np.empty(_CHUNK, np.uint8)
    words = hits.view(np.uint64)  # eight entries at once, most often none of which is wanted
    kept = 0
    for variable in range(len(ends)):
        greatest = maxima[variable]
        least = np.float32(reach * greatest * np.float32(1 - 1e-6))  # spares most entries the division
        for begin in range(ends[variable - 1] if variable else 0, ends[variable], _CHUNK):
            chunk = gradient[begin : min(begin + _CHUNK, ends[variable])]
            hit = 0
            for place in range(len(chunk)):
                hits[place] = abs(chunk[place]) >= least
                hit += hits[place]
            first = kept
            if hit > len(chunk) // _RARE:
                for place in range(len(chunk)):
                    indices[kept] = place
                    kept += hits[place]
            else:
                hits[len(chunk) :] = 0
                for word in range((len(chunk) + 7) // 8):
                    if words[word]:
                        for place in range(8 * word, 8 * word + 8):
                            indices[kept] = place
                            kept += hits[place]
            false = 0
            for found in range(first, kept):
                value = chunk[indices[found]]
                magnitudes[found], values[found] = abs(value) / greatest, value
                indices[found] += begin
                false += not (magnitudes[found] >= reach and magnitudes[found] > 0)
            if false:
                last, kept = kept, first
                for found in range(first, last):
                    magnitude = magnitudes[found]
                    indices[kept], magnitudes[kept], values[kept] = indices[found], magnitude, values[found]
                    kept += magnitude >= reach and magnitude > 0
    return indices[:kept], magnitudes[:kept], values[:kept]


@njit(cache=True)
def _at_least(indices: Any, magnitudes: Any, values: Any, threshold: float) -> Any:
    """Those of the entries whose magnitude reaches the threshold."""
    count = 0
    for place in range(len(magnitudes)):
        count += magnitudes[place] >= threshold
    # One more, as an entry is written before it is known whether to keep it: that is faster than to choose.
    some = np.empty(count + 1, np.int32), np.empty(count + 1, np.float32), np.empty(count + 1, np.float32)
    kept = 0
    for place in range(len(magnitudes)):
        some[0][kept], some[1][kept], some[2][kept] = indices[place], magnitudes[place], values[place]
        kept += magnitudes[place] >= threshold
    return some[0][:kept], some[1][:kept], some[2][:kept]


@njit(cache=True)
def _bucket_counts(values: Any) -> Any:
    bits = values.view(np.int32)
    counts = np.zeros((bits.max() >> _SHIFT) + 1 if len(bits) else 1, np.int64)
    for place in range(len(bits)):
        counts[bits[place] >> _SHIFT] += 1
    return counts


@njit(cache=True)
def _in_buckets(values: Any, wanted: Any) -> Any:
    bits = values.view(np.int32)
    inside = np.empty(len(values) + 1, np.float32)
    kept = 0
    for place in range(len(values)):
        inside[kept] = values[place]
        kept += wanted[bits[place] >> _SHIFT]
    return inside[:kept]
