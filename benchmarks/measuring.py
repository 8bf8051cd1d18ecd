"""Comparing wall times of two programs that took turns."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


def ratio(reference: Sequence[float], ours: Sequence[float]) -> str:
    """How many times as fast ours is: the median over the turns, and the least and the greatest of them."""
    ratios = [a / b for a, b in zip(reference, ours, strict=True)]
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
