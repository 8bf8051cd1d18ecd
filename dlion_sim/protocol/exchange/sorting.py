"""Which entries of a gradient to send, found on the GPU that it is on, where sorting all costs less than a copy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dlion_sim.learning.flat import Layout

_LEAST = torch.finfo(torch.float32).tiny


class SortedRanking:
    """As `Ranking`, of a gradient [P] on any device; selected entries stay there, and only numbers are read."""

    def __init__(self, gradient: Tensor, layout: Layout | None = None) -> None:
        if layout and gradient.shape != (layout.size,):
            raise ValueError(f"a gradient {list(gradient.shape)} is no gradient of {layout.size} parameters")
        self._gradient = gradient
        magnitudes = gradient.abs()
        if layout:
            variables = [variable for variable in magnitudes.split_with_sizes(layout.sizes) if len(variable)]
            magnitudes = torch.cat([variable / variable.amax().clamp_min(_LEAST) for variable in variables])
        positive = torch.where(magnitudes > 0, magnitudes, 0.0)  # NaN is not positive.
        self._negated, self._order = positive.neg().sort(stable=True)
        self._reaching: dict[float, int] = {}
        """How many entries reach a threshold."""

    def thresholds(self, counts: Sequence[int]) -> list[float]:
        """For each count the smallest threshold that at most `count` entries reach, as near to it as ties allow.

        Entries that tie are selected together or not at all. A count of 0 gives infinity, one of P or more gives 0.
        """
        size = len(self._negated)
        wanted = sorted({count for count in counts if count < size})
        found = {count: 0.0 for count in counts if count >= size}
        if wanted:
            first_left_out = torch.cat([self._negated[count : count + 1] for count in wanted])
            reaching = torch.searchsorted(self._negated, first_left_out)
            least = torch.where(reaching > 0, -self._negated[(reaching - 1).clamp_min(0)], torch.inf)
            for count, (threshold, number) in zip(
                wanted, torch.stack([least.double(), reaching.double()], dim=1).tolist(), strict=True
            ):
                found[count], self._reaching[threshold] = threshold, int(number)
        return [found[count] for count in counts]

    def selections(self, thresholds: Sequence[float]) -> dict[float, tuple[Tensor, Tensor]]:
        """By threshold, the indices [m] (int32, increasing) and values [m] of the entries that reach it."""
        distinct = sorted(set(thresholds))
        unknown = [threshold for threshold in distinct if threshold not in self._reaching]
        if unknown:
            numbers = torch.stack([(self._negated <= -_reached_by(threshold)).sum() for threshold in unknown])
            self._reaching |= zip(unknown, numbers.tolist(), strict=True)
        chosen = {}
        for threshold in distinct:
            indices = self._order[: self._reaching[threshold]].sort().values
            chosen[threshold] = indices.to(torch.int32), self._gradient[indices]
        return chosen

    def top(self, count: int) -> Tensor:
        """Indices (int32, increasing) of the `count` entries of greatest magnitude, or of all that are not zero."""
        number = int((self._negated[:count] < 0).sum())
        return self._order[:number].sort().values.to(torch.int32)


def _reached_by(threshold: float) -> float:
    """The least positive float32 that is as large."""
    least = max(np.float32(threshold), np.nextafter(np.float32(0), np.float32(1)))
    return float(least if float(least) >= threshold else np.nextafter(least, np.float32(np.inf)))
