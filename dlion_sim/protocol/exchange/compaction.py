"""Compiled selection of entries of a gradient, each in one pass over memory where array operations take several.

What is called from outside gives up the interpreter's lock meanwhile, for which threads that compute gradients wait.

Entries come variable by variable, in their order in the gradient; `ends` [variables] has their ends.
Loops are written so that the compiler can vectorize them: over slices, whose indices cannot be negative, and with
unsigned counters, as numba handles negative indices of signed ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

SHIFT = np.uint32(15)
"""Trailing bits to ignore: about 32,000 buckets between 0 and 1, each within 0.2 to 0.4 % of one value."""

_LEAST_NORMAL, _INFINITE, _NO_SIGN = np.int32(0x00800000), np.int32(0x7F800000), np.int32(0x7FFFFFFF)
"""Bits of floats. Without their signs they are in the floats' own order, and NaN is above all others."""
_WORD = 64
"""Entries per word of selection bits."""
_CHUNK = 8 * _WORD
"""Entries that are compared before the selected ones are written, so that both can overlap."""
_STEP = 8
"""Entries that are written between two checks for more in a word: a branch misprediction costs more than a few."""
_unsigned = np.uint64


@njit(cache=True, nogil=True)
def maxima(gradient: Any, ends: Any) -> Any:
    """The greatest magnitude of each variable, at least the least normal number; NaN if an entry is."""
    bits = gradient.view(np.int32)
    greatest = np.empty(len(ends), np.int32)
    for variable in range(len(ends)):
        some, most = bits[ends[variable - 1] if variable else 0 : ends[variable]], _LEAST_NORMAL
        for place in range(len(some)):
            most = max(most, some[place] & _NO_SIGN)
        greatest[variable] = most
    return greatest.view(np.float32)


@njit(cache=True, nogil=True)
def lower_bound(gradient: Any, ends: Any, maxima: Any, stride: int, count: int) -> Any:
    """A magnitude, normalised, that at least `count` of every `stride`-th entry reach, and few more of these."""
    bits = _sample(gradient, ends, maxima, stride).view(np.uint32)
    bucket, _ = _bucket_of(_bucket_counts(bits), count)
    return np.full(1, bucket << SHIFT, np.uint32).view(np.float32)[0]


@njit(cache=True)
def _sample(gradient: Any, ends: Any, maxima: Any, stride: int) -> Any:
    """Normalised magnitudes of every `stride`-th entry, NaN as 0."""
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


@njit(cache=True, nogil=True)
def normalised(values: Any, ends: Any, maxima: Any) -> Any:
    """Magnitudes over the maxima of their variables."""
    magnitudes = np.empty(len(values), np.float32)
    for variable in range(len(ends)):
        begin, greatest = ends[variable - 1] if variable else 0, maxima[variable]
        some, theirs = values[begin : ends[variable]], magnitudes[begin : ends[variable]]
        for place in range(len(some)):
            theirs[place] = abs(some[place]) / greatest
    return magnitudes


@njit(cache=True)
def _cutoffs(maxima: Any, threshold: float) -> Any:
    """The least magnitude of each variable that, normalised, reaches the threshold and is not 0.

    Entries are compared with it instead of being normalised. It is found by bisection of the floats' bits, as the
    product of maximum and threshold may be off by a rounding. NaN, which none reaches, if the maximum is infinite or
    NaN itself.
    """
    bits = np.empty(1, np.int32)
    magnitude = bits.view(np.float32)
    least = np.full(len(maxima), np.nan, np.float32)
    for variable in range(len(maxima)):
        if maxima[variable] < np.inf:
            too_small, enough = np.int32(0), _INFINITE
            while enough - too_small > 1:
                bits[0] = too_small + (enough - too_small) // 2
                ratio = magnitude[0] / maxima[variable]
                if ratio >= threshold and ratio > 0:
                    enough = bits[0]
                else:
                    too_small = bits[0]
            bits[0] = enough
            least[variable] = magnitude[0]
    return least


@intrinsic
def _trailing_zeros(_: Any, word: Any) -> Any:
    """The place of the last bit of a word that is set; 64 if none is."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

    return word(word), generate


@njit(cache=True)
def _marks(entries: Any, count: int, cutoff: Any) -> Any:
    """A word with a bit for each of the first `count` entries that reaches the cutoff."""
    word = _unsigned(0)
    for bit in range(count):
        word |= _unsigned(abs(entries[bit]) >= cutoff) << _unsigned(bit)
    return word


@njit(cache=True, nogil=True)
def reaching(gradient: Any, ends: Any, maxima: Any, threshold: float) -> Any:
    """Indices and values of the entries that, normalised, reach the threshold, and the variables' ends among them."""
    cutoffs = _cutoffs(maxima, threshold)
    indices, values = np.empty(len(gradient) + _STEP, np.int32), np.empty(len(gradient) + _STEP, np.float32)
    kept, kept_ends = _unsigned(0), np.empty_like(ends)
    words = np.empty(_CHUNK // _WORD, np.uint64)
    for variable in range(len(ends)):
        cutoff = cutoffs[variable]
        for begin in range(ends[variable - 1] if variable else 0, ends[variable], _CHUNK):
            chunk = gradient[begin : min(begin + _CHUNK, ends[variable])]
            full, rest = len(chunk) // _WORD, len(chunk) % _WORD
            for word in range(full):
                words[word] = _marks(chunk[word * _WORD :], _WORD, cutoff)  # a fixed number: that is compiled best
            if rest:
                words[full] = _marks(chunk[full * _WORD :], rest, cutoff)
            for word in range(full + (rest > 0)):
                marks = words[word]
                while marks:
                    for _ in range(_STEP):
                        bit = _trailing_zeros(marks) % _unsigned(_WORD)  # type: ignore[call-arg]
                        place = _unsigned(word * _WORD) + bit
                        indices[kept], values[kept] = begin + np.int64(place), chunk[place]
                        kept += _unsigned(marks != 0)
                        marks &= marks - _unsigned(1)
        kept_ends[variable] = kept
    count = np.int64(kept)
    return indices[:count], values[:count], kept_ends


@njit(cache=True, nogil=True)
def at_least(indices: Any, values: Any, ends: Any, maxima: Any, threshold: float) -> Any:
    """As `reaching`, of entries that were selected already; efficient if they are not few."""
    cutoffs, count = _cutoffs(maxima, threshold), 0
    for variable in range(len(ends)):
        some, cutoff = values[ends[variable - 1] if variable else 0 : ends[variable]], cutoffs[variable]
        for place in range(len(some)):
            count += abs(some[place]) >= cutoff
    # One more, as an entry is written before it is known whether it is selected, which is faster than a branch.
    kept_indices, kept_values = np.empty(count + 1, np.int32), np.empty(count + 1, np.float32)
    kept, kept_ends = _unsigned(0), np.empty_like(ends)
    for variable in range(len(ends)):
        begin, cutoff = ends[variable - 1] if variable else 0, cutoffs[variable]
        some_indices, some_values = indices[begin : ends[variable]], values[begin : ends[variable]]
        for place in range(len(some_values)):
            kept_indices[kept], kept_values[kept] = some_indices[place], some_values[place]
            kept += _unsigned(abs(some_values[place]) >= cutoff)
        kept_ends[variable] = kept
    return kept_indices[:count], kept_values[:count], kept_ends


@njit(cache=True, nogil=True)
def thresholds(values: Any, ends: Any, maxima: Any, counts: Any) -> Any:
    """For each of `counts` [k] (int64) the smallest of the normalised `values` [n], none 0, that at most so many reach.

    Infinity if none is; float32 [k].

    They are counted by their leading bits. So a rank is known to lie in one bucket, and only those buckets' few
    values are put in order.
    """
    bits, size = normalised(values, ends, maxima).view(np.uint32), len(values)
    found = np.full(len(counts), _INFINITE, np.uint32)
    in_bucket = _bucket_counts(bits)
    buckets, above = np.zeros(len(counts), np.int64), np.zeros(len(counts), np.int64)
    wanted = np.zeros(len(in_bucket), np.bool_)
    for place in range(len(counts)):
        if 0 < counts[place] < size:
            buckets[place], above[place] = _bucket_of(in_bucket, counts[place])
            wanted[buckets[place]] = True
    ordered = np.sort(_in_buckets(bits, wanted))
    for place in range(len(counts)):
        if 0 < counts[place] < size:
            begin, end = (
                np.searchsorted(ordered, buckets[place] << SHIFT),
                np.searchsorted(ordered, (buckets[place] + 1) << SHIFT),
            )
            inside = ordered[begin:end]
            least = inside[len(inside) - (counts[place] - above[place])]
            if above[place] + len(inside) - np.searchsorted(inside, least) <= counts[place]:
                found[place] = least
            elif inside[-1] > least:
                found[place] = inside[np.searchsorted(inside, least, side="right")]
            else:
                for each in bits:
                    if least < each < found[place]:
                        found[place] = each
        elif size and counts[place]:
            found[place] = bits.min()
    return found.view(np.float32)


@njit(cache=True)
def _bucket_counts(bits: Any) -> Any:
    """The number of values by their leading bits."""
    counts = np.zeros((bits.max() >> SHIFT) + 1 if len(bits) else 1, np.int64)
    for place in range(len(bits)):
        counts[bits[place] >> SHIFT] += 1
    return counts


@njit(cache=True)
def _bucket_of(in_bucket: Any, count: int) -> Any:
    """The bucket of the `count`-th largest value, and how many are in those above."""
    bucket, above = len(in_bucket) - 1, 0
    while bucket > 0 and above + in_bucket[bucket] < count:
        above += in_bucket[bucket]
        bucket -= 1
    return bucket, above


@njit(cache=True)
def _in_buckets(bits: Any, wanted: Any) -> Any:
    """The values whose leading bits are wanted."""
    inside = np.empty(len(bits) + 1, np.uint32)
    kept = _unsigned(0)
    for place in range(len(bits)):
        inside[kept] = bits[place]
        kept += _unsigned(wanted[bits[place] >> SHIFT])
    return inside[: np.int64(kept)]
