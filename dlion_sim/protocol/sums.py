"""Weighted sums of contributions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dlion_sim.protocol.updates import Update

Weighted = tuple[Update, float]


class WeightedSums:
    """Forms sums and keeps the last one: workers in step that share one of these ask for the same, one after another.

    That makes all workers' sums of n whole gradients cost n additions, and not n^2.
    """

    def __init__(self) -> None:
        self._last: tuple[Sequence[Weighted], Tensor] | None = None

    def of(self, terms: Sequence[Weighted], size: int) -> Tensor:
        """The sum [size] of contributions times their factors, not to be written; entries that one lacks count as 0.

        Which terms there are decides the result to the bit, their order does not: whole contributions come first, then
        by (iteration, sender).
        """
        ordered = sorted(terms, key=lambda term: (not term[0].is_whole(size), term[0].body.iteration, term[0].sender))
        if self._last is None or not _same(self._last[0], ordered):
            self._last = ordered, _sum(ordered, size)
        return self._last[1]


def _sum(terms: Sequence[Weighted], size: int) -> Tensor:
    (first, factor), *rest = terms
    if first.is_whole(size):
        total = first.tensors[0] * factor
    else:
        total = torch.zeros(size, device=first.tensors[0].device)
        first.add_to(total, factor)
    for update, factor in rest:
        update.add_to(total, factor)
    return total


def _same(terms: Sequence[Weighted], others: Sequence[Weighted]) -> bool:
    """Whether they are of the same tensors, which nobody writes once they are sent."""
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
