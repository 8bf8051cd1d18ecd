"""Weighted sums of contributions: what a step takes of many gradients."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import is_not
from typing import Any, TypeVar

import numpy as np
import torch
from numba import carray, njit  # type: ignore[attr-defined]
from torch import Tensor

from dlion_sim.addresses import pointer
from dlion_sim.protocol.updates import Update

_BLOCK = 4096
"""Entries to which all contributions are added before the next ones: so many stay in a core's first cache."""
_LARGE = 2**16
"""Entries from which on one compiled pass is faster than an operator for each contribution."""
_NOTHING = np.empty(0, np.float32)
Weighted = tuple[Update, float]
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
        ordered = sorted(terms, key=lambda term: (not term[0].is_whole(size), term[0].body.iteration, term[0].sender))
        if self._last is None or not _same(self._last[0], ordered):
            self._last = ordered, _sum(ordered, size)
        return self._last[1]

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


def _sum(terms: Sequence[Weighted], size: int) -> Tensor:
    (first, factor), *rest = terms
    whole = first.tensors[0] if first.is_whole(size) else None
    entries = terms if whole is None else rest
    if size >= _LARGE and entries and all(_are_entries_of_a_cpu(update.tensors) for update, _ in entries):
        return _sum_of_entries(whole, factor, entries, size)
    total = torch.zeros(size, device=first.tensors[0].device) if whole is None else whole * factor
    for update, factor in entries:
        update.add_to(total, factor)
    return total


def _are_entries_of_a_cpu(tensors: Sequence[Tensor]) -> bool:
    """Whether they are indices and values as compiled code, which trusts them, reads them."""
    return (
        len(tensors) == 2
        and len(tensors[0]) == len(tensors[1])
        and all(
            tensor.dtype == dtype and tensor.device.type == "cpu" and tensor.is_contiguous()
            for tensor, dtype in zip(tensors, (torch.int32, torch.float32), strict=True)
        )
    )


def _sum_of_entries(whole: Tensor | None, its_factor: float, entries: Sequence[Weighted], size: int) -> Tensor:
    """The sum [size] of a whole contribution, if there is one, times its factor, and of entries times theirs.

    To the bit as by `add_to`, but in one pass over memory, and without the interpreter's lock.
    """
    total = torch.empty(size)
    located = np.array(
        [(update.tensors[0].data_ptr(), update.tensors[1].data_ptr(), len(update.tensors[0])) for update, _ in entries]
    )
    factors = np.array([factor for _, factor in entries], np.float32)
    first = _NOTHING if whole is None else whole.numpy()
    if not _add_up(total.numpy(), first, np.float32(its_factor), located, factors):
        raise IndexError(f"a contribution's indices are not increasing below {size}")
    return total


@njit(cache=True, nogil=True)
def _add_up(total: Any, first: Any, its_factor: Any, located: Any, factors: Any) -> bool:
    """Write to `total` [P] the sum of `first` [P or 0] times a factor and of entries times `factors` [n] (float32).

    `located` [n, 3] has the addresses of each one's indices and values, and how many there are. Returns whether indices
    are increasing and below P.
    """
    added = np.zeros(len(located), np.int64)
    for begin in range(0, len(total), _BLOCK):
        end = min(begin + _BLOCK, len(total))
        block, its = total[begin:end], first[begin:end]
        if len(first):
            for place in range(len(block)):
                block[place] = its[place] * its_factor
        else:
            block[:] = 0
        for term in range(len(located)):
            count = located[term, 2]
            indices = carray(pointer(located[term, 0]), count, np.int32)  # type: ignore[call-arg]
            values = carray(pointer(located[term, 1]), count, np.float32)
            next_one, factor = added[term], factors[term]
            while next_one < count and indices[next_one] < end:
                if indices[next_one] < begin:
                    return False
                block[np.uint64(indices[next_one] - begin)] += values[next_one] * factor
                next_one += 1
            added[term] = next_one
    return bool(np.all(added == located[:, 2]))


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
