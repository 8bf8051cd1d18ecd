"""A model of the stall of an iteration by the number and size of messages (after Stash, ICDCS'23)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Model:
    """stall = max(0, seconds_per_message * messages + seconds_per_byte * bytes + seconds), of an iteration.

    `messages` is the number of sequential ones, `bytes` those over the slowest link.
    """

    seconds_per_message: float
    seconds_per_byte: float
    seconds: float
    """Constant per iteration; negative if computing hides as much of it."""
    explained: float
    """R squared."""

    def stall(self, messages: float, size: float) -> float:
        """The stall (s) of an iteration with so many messages and bytes."""
        return max(0.0, self.seconds_per_message * messages + self.seconds_per_byte * size + self.seconds)


def fit(messages: Sequence[float], sizes: Sequence[float], stalls: Sequence[float]) -> Model:
    """Fit the model to stalls [k] (s) of iterations with so many messages and bytes, by least relative squares.

    Stalls of 0 are hidden ones and are left out. Raises ValueError for fewer than three others.
    """
    stalled = np.asarray(stalls) > 0
    if stalled.sum() < 3:
        raise ValueError("at least three stalls are needed for three coefficients")
    terms = np.column_stack([np.asarray(messages), np.asarray(sizes), np.ones(len(stalled))])[stalled]
    seconds = np.asarray(stalls, dtype=float)[stalled]
    # Scaled columns and relative errors, as stalls of models differ a thousandfold.
    scale = np.abs(terms).max(axis=0)
    weighted = terms / scale / seconds[:, None]
    coefficients = np.linalg.lstsq(weighted, np.ones(len(seconds)), rcond=None)[0] / scale
    per_message, per_byte, always = map(float, coefficients)
    missed = np.maximum(terms @ coefficients, 0.0) - seconds
    explained = 1 - float((missed**2).sum() / ((seconds - seconds.mean()) ** 2).sum())
    return Model(per_message, per_byte, always, explained)
