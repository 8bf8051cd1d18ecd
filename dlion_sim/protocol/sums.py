"""Weighted sums of contributions: what a step takes of many gradients."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from operator import is_not
from typing import Any, TypeVar

import numpy as np
import torch
from numba import carray, njit  # type: ignore[attr-defined]
from numba.extending import intrinsic
from torch import Tensor

from dlion_sim.addresses import pointer
from dlion_sim.protocol.updates import Update

_BLOCK = 4096
"""Entries to which all contributions are added before the next ones: so many stay in a core's first cache. A power of
two."""
_PLACE = np.int32(_BLOCK - 1)
"""The bits of an index that are its place in a block."""
_UNROLLED = 8
"""Entries that are added between two looks at whether the next ones are of the same block."""
_LARGE = 2**16
"""Entries from which on one compiled pass is faster than an operator for each contribution."""
_NOTHING = np.empty(0, np.float32)
Weighted = tuple[Update, float]
Adding = Callable[[Tensor, float], None]
"""Adds a sum times a number to a vector [P]."""
Result = TypeVar("Result")


class WeightedSums:
    """Computes weighted sums, and what is derived of tensors, and caches the last one of each.

    Synchronous workers of one process share an instance and ask for the same sum one after another: the sums of n
    workers cost n additions instead of n^2.
    """

    def __init__(self) -> None:
        self._last: tuple[Sequence[Weighted], Tensor] | None = None
        self._derived: tuple[Sequence[Tensor], Hashable, Any] | None = None

    def of(self, terms: Sequence[Weighted], size: int) -> Tensor:
        """The sum [size] of contributions times their factors; missing entries count as 0. Not to be written.

        The result does not depend on the order of the terms, to the bit: they are sorted, whole contributions first,
        then by (iteration, sender).
        """
        ordered = _ordered(terms, size)
        if self._last is None or not _same(self._last[0], ordered):
            self._last = ordered, _sum(ordered, size)
        return self._last[1]

    def adding(self, terms: Sequence[Weighted], size: int) -> Adding | None:
        """What adds the sum, which is not kept, times a number to a vector [size], to the bit as `Tensor.add_`.

        None if `of` is as fast, or others may ask for the same sum: that of a whole contribution and of entries is of
        one worker alone. Raises IndexError, with the vector written, for indices that are not increasing and below
        `size`.
        """
        if size < _LARGE:
            return None
        (own, factor), *rest = _ordered(terms, size)
        if not (rest and own.is_whole(size) and _are_for_compiled_code(rest)):
            return None
        return partial(_add_terms, keeps=True, whole=own.tensors[0], its_factor=factor, entries=rest)

    def derived(
        self, tensors: Sequence[Tensor], key: Hashable, function: Callable[[Sequence[Tensor]], Result]
    ) -> Result:
        """`function` of `tensors`, which are not written any more, computed once for all that ask one after another for
        the same objects with an equal `key`, which stands for the function. Not to be written."""
        last = self._derived
        if last is None or last[1] != key or len(last[0]) != len(tensors) or any(map(is_not, last[0], tensors)):
            self._derived = last = tensors, key, function(tensors)
        result: Result = last[2]
        return result


def prepare(size: int) -> None:
    """Load what sums of vectors [size] need, or compile it, which takes seconds, before the first one is due."""
    if size >= _LARGE:
        no_terms = np.empty((0, 3), np.int64)
        _add_up(np.zeros(1, np.float32), np.float32(1), True, _NOTHING, np.float32(1), no_terms, _NOTHING)


def _ordered(terms: Sequence[Weighted], size: int) -> Sequence[Weighted]:
    return sorted(terms, key=lambda term: (not term[0].is_whole(size), term[0].body.iteration, term[0].sender))


def _sum(terms: Sequence[Weighted], size: int) -> Tensor:
    (first, factor), *rest = terms
    whole = first.tensors[0] if first.is_whole(size) else None
    entries = terms if whole is None else rest
    if size >= _LARGE and entries and _are_for_compiled_code(entries):
        total = torch.empty(size)
        _add_terms(total, 1.0, keeps=False, whole=whole, its_factor=factor, entries=entries)
        return total
    total = torch.zeros(size, device=first.tensors[0].device) if whole is None else whole * factor
    for update, factor in entries:
        update.add_to(total, factor)
    return total


def _are_for_compiled_code(terms: Sequence[Weighted]) -> bool:
    """Whether they are indices and values as compiled code, which trusts them, reads them."""
    return all(
        len(update.tensors) == 2
        and len(update.tensors[0]) == len(update.tensors[1])
        and all(
            tensor.dtype == dtype and tensor.device.type == "cpu" and tensor.is_contiguous()
            for tensor, dtype in zip(update.tensors, (torch.int32, torch.float32), strict=True)
        )
        for update, _ in terms
    )


def _add_terms(
    target: Tensor, times: float, *, keeps: bool, whole: Tensor | None, its_factor: float, entries: Sequence[Weighted]
) -> None:
    """Write to `target` [P] the sum of a whole contribution, if there is one, times its factor, and of entries times
    theirs; or, if the target `keeps` its values, add that `times` a number to them.

    To the bit as by `add_to` and `add_`, but in one pass over memory, and without the interpreter's lock.
    """
    located = np.array(
        [(update.tensors[0].data_ptr(), update.tensors[1].data_ptr(), len(update.tensors[0])) for update, _ in entries]
    )
    factors = np.array([factor for _, factor in entries], np.float32)
    first = _NOTHING if whole is None else whole.numpy()
    if not _add_up(target.numpy(), np.float32(times), keeps, first, np.float32(its_factor), located, factors):
        raise IndexError(f"a contribution's indices are not increasing below {len(target)}")


@intrinsic
def _multiply_add(_: Any, number: Any, factor: Any, summand: Any) -> Any:
    """number * factor + summand, rounded once, as torch's `add_` does it."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return number(number, factor, summand), generate


@njit(cache=True, nogil=True)
def _add_up(target: Any, times: Any, keeps: bool, first: Any, its_factor: Any, located: Any, factors: Any) -> bool:
    """`_add_terms` of `first` [P or 0], and of entries with `factors` [n] (float32).

    `located` [n, 3] has the addresses of each one's indices and values, and how many there are. Returns whether indices
    are increasing and below P; no other place is written if not.
    """
    added, total = np.zeros(len(located), np.int64), np.empty(_BLOCK, np.float32)
    misplaced = np.int32(0)
    for begin in range(0, len(target), _BLOCK):
        end = min(begin + _BLOCK, len(target))
        block, its = target[begin:end], first[begin:end]
        if len(first):
            for place in range(len(its)):
                total[place] = its[place] * its_factor
        else:
            total[:] = 0
        for term in range(len(located)):
            count = located[term, 2]
            indices = carray(pointer(located[term, 0]), count, np.int32)  # type: ignore[call-arg]
            values = carray(pointer(located[term, 1]), count, np.float32)
            next_one, factor = added[term], factors[term]
            while next_one < count and indices[next_one] < end:
                few = _UNROLLED if next_one + _UNROLLED <= count and indices[next_one + _UNROLLED - 1] < end else 1
                some, theirs = indices[next_one : next_one + few], values[next_one : next_one + few]
                for entry in range(few):
                    misplaced |= some[entry] ^ np.int32(begin)
                    total[np.uint32(some[entry] & _PLACE)] += theirs[entry] * factor
                next_one += few
            added[term] = next_one
        if keeps:
            for place in range(len(block)):
                block[place] = _multiply_add(total[place], times, block[place])  # type: ignore[call-arg]
        else:
            for place in range(len(block)):
                block[place] = total[place]
    return bool(misplaced & ~_PLACE == 0 and np.all(added == located[:, 2]))


def _same(terms: Sequence[Weighted], others: Sequence[Weighted]) -> bool:
    """Whether all tensors are the same objects, which are not written after sending."""
    return len(terms) == len(others) and all(
        factor == other_factor and (update is other or _is_same(update, other))
        for (update, factor), (other, other_factor) in zip(terms, others, strict=True)
    )


def _is_same(update: Update, other: Update) -> bool:
    return (
        update.body.offset == other.body.offset
        and len(update.tensors) == len(other.tensors)
        and all(tensor is its for tensor, its in zip(update.tensors, other.tensors, strict=True))
    )
