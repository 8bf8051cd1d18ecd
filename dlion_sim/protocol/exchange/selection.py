"""Max-N selection: the entries of a gradient within N percent of their variable's maximum (DLion, HPDC'21).

An entry's normalised magnitude is r = |g| / max|g| over its own variable, so that selecting by N is one threshold for
all variables, r >= 1 - N/100, and the largest N that fits a budget of m entries has the m-th largest r as threshold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
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
    size = ratios.numel()
    ranks = sorted({size - count for count in counts if 0 < count < size})
    ordered = _with_ranks_in_place(ratios, ranks)
    thresholds = []
    for count in counts:
        if count <= 0:
            threshold = float("inf")
        elif count >= size:
            threshold = 0.0
        else:
            threshold = float(ordered[size - count])
            if int((ratios >= threshold).sum()) > count:
                above = ratios[ratios > threshold]
                threshold = float(above.min()) if above.numel() else float("inf")
        thresholds.append(threshold)
    return thresholds


def selected(ratios: Tensor, threshold: float) -> Tensor:
    """Indices [m] (int32, increasing) of the entries that reach `threshold` and are not zero."""
    mask = ratios >= threshold if threshold > 0 else ratios > 0
    return mask.nonzero().squeeze(1).to(torch.int32)


def _with_ranks_in_place(ratios: Tensor, ranks: list[int]) -> Tensor | np.ndarray:
    """The ratios reordered so that those of the given ascending ranks stand where a sort would put them."""
    if not ranks:
        return ratios
    if ratios.device.type == "cpu":
        return np.partition(ratios.numpy(), ranks)
    return ratios.sort().values
