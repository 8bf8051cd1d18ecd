"""From the times of some batch sizes to what a batch and a sample take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from dlion_sim.errors import InputError

_DECISIVE = 1e3
"""What the error of the size counts for that the line goes through."""


@dataclass(frozen=True)
class Fit:
    """T(b) = alpha + slope * b (s) for an iteration of b samples."""

    alpha: float
    slope: float
    r2: float
    """The part of the times' variance that it explains."""
    worst: float
    """By which part of a time it is off, where it is most."""

    def seconds(self, batch_size: int) -> float:
        """That it says of a batch size."""
        return self.alpha + self.slope * batch_size


def fit(seconds: Mapping[int, float], through: int | None = None) -> Fit:
    """The least squares of relative errors, neither part below 0, of the seconds (> 0) by batch size, two or more.

    Times are on no straight line where memory and caches are small: the line goes `through` the size that matters most,
    if neither part is below 0 then. Raises InputError where larger batches do not take longer.
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
