"""Capacities that change while nodes run."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Protocol


class Capacity(Protocol):
    """What a link carries or a processor computes."""

    def changes(self) -> Iterator[tuple[float, float]]:
        """(seconds since the start, value from then on); without end if it repeats."""

    def set(self, value: float, /) -> None:
        """Change it from now on."""


def in_order(capacities: Sequence[Capacity]) -> Iterator[tuple[float, partial[None]]]:
    """(seconds since the start, what makes it) of all changes; without end if one's are."""
    return heapq.merge(*map(_changes, capacities), key=lambda change: change[0])


def _changes(capacity: Capacity) -> Iterator[tuple[float, partial[None]]]:
    for at, value in capacity.changes():
        yield at, partial(capacity.set, value)
