"""Fit of the times of an iteration and of a sample to the times of some batch sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from dlion_sim.errors import InputError

_DECISIVE = 1e3
"""Weight of the batch size that the line goes through."""


@dataclass(frozen=True)
class Fit:
    """T(b) = alpha + slope * b (s) for an iteration of b samples."""

    alpha: float
    slope: float
    r2: float
    """The explained share of the times' variance."""
    worst: float
    """The greatest relative error of a time."""

    def seconds(self, batch_size: int) -> float:
        """The fitted time of a batch size."""
        return self.alpha + self.slope * batch_size


def fit(seconds: Mapping[int, float], through: int | None = None) -> Fit:
    """Non-negative least squares of relative errors, of the seconds (> 0) by batch size, two or more.

    With small memory and caches, times are not on a straight line: it goes `through` the most important size, if both
    coefficients can be 0 or more then. Raises InputError if larger batches do not take longer.
    """
    sizes, times = np.array(list(seconds), dtype=float), np.array(list(seconds.values()))
    weights = np.where(sizes == through, _DECISIVE, 1.0)
    (alpha, slope), _ = nnls(np.stack([1 / times, sizes / times], axis=1) * weights[:, None], weights)
    if slope <= 0:
        raise InputError(
            f"batches of {sizes.max():.0f} samples take no longer than of {sizes.min():.0f}, so nothing tells what a "
            "sample takes",
            path="workload.batch_size",
            allowed="larger batches: up to four times as many are timed",
        )
    residuals = alpha + slope * sizes - times
    spread = float(np.sum((times - times.mean()) ** 2))
    r2 = 1 - float(np.sum(residuals**2)) / spread if spread else 1.0
    return Fit(float(alpha), float(slope), r2, float(np.max(np.abs(residuals) / times)))
