"""Max-N selection: the entries of a gradient within N percent of their variable's maximum (DLion, HPDC'21).

An entry's normalised magnitude is r = |g| / max|g| over its own variable, so that selecting by N is one threshold for
all variables, r >= 1 - N/100, and the largest N that fits a budget of m entries has the m-th largest r as threshold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dlion_sim.learning.flat import Layout


def normalised_magnitudes(gradient: Tensor, layout: Layout) -> Tensor:
    """|g| over the maximum of its variable, [P] in [0, 1]; zero where that is no number, or the gradient vanishes."""
    ratios = gradient.abs()
    for variable in layout.views(ratios):
        variable.div_(variable.max().clamp_min(torch.finfo(variable.dtype).tiny))
    return ratios.nan_to_num_(nan=0.0)


def budget_thresholds(ratios: Tensor, counts: Sequence[int]) -> list[float]:
    """For each count the smallest threshold that at most `count` entries reach, as near to it as ties allow.

    Entries that tie are selected together or not at all. A count of 0 gives infinity; zeros are never selected.
    """
    ranked = _Buckets(ratios.cpu().numpy())
    return [ranked.threshold(count) for count in counts]


def selected(ratios: Tensor, threshold: float) -> Tensor:
    """Indices [m] (int32, increasing) of the entries that reach `threshold` and are not zero."""
    values = ratios.cpu().numpy()
    chosen = np.flatnonzero(values >= threshold if threshold > 0 else values > 0)
    return torch.from_numpy(chosen.astype(np.int32)).to(ratios.device)


class _Buckets:
    """Non-negative floats counted by their leading bits, which are in the floats' own order.

    So a rank is known to lie in one bucket, and only that one's few values are put in order: several times faster than
    partitioning all of them, and the more so the more thresholds are asked for.
    """

    _SHIFT = 17
    """Trailing bits to ignore: about 8,000 buckets between 0 and 1, each within 1 to 2 % of one value."""

    def __init__(self, values: npt.NDArray[np.float32]) -> None:
        self._values = values
        counts = torch.bincount(torch.from_numpy(values).view(torch.int32) >> self._SHIFT)
        self._up_to = np.cumsum(counts.numpy())
        """Number of values in each bucket and those below it."""

    def threshold(self, count: int) -> float:
        """The smallest of the values that at most `count` of them reach; infinity if there is none."""
        size = len(self._values)
        if count <= 0:
            return float("inf")
        if count >= size:
            return 0.0
        bucket = int(np.searchsorted(self._up_to, size - count, side="right"))
        low, high = (np.array([bucket, bucket + 1], dtype=np.int32) << self._SHIFT).view(np.float32)
        inside = np.sort(self._values[(self._values >= low) & (self._values < high)])
        above = size - int(self._up_to[bucket])
        threshold = inside[len(inside) - (count - above)]
        if above + len(inside) - int(np.searchsorted(inside, threshold)) <= count:
            return float(threshold)
        larger = inside[np.searchsorted(inside, threshold, side="right") :]
        if not len(larger):
            larger = self._values[self._values >= high]
        return float(larger.min()) if len(larger) else float("inf")
