"""What an iteration waits for messages, from their number and size alone (after Stash, ICDCS'23)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Model:
    """stall = max(0, seconds_per_message * messages + seconds_per_byte * bytes + seconds), of an iteration.

    `messages` are those that come one after the other, `bytes` what crosses the slowest link.
    """

    seconds_per_message: float
    seconds_per_byte: float
    seconds: float
    """Of each iteration, whatever it sends; negative where computing hides as much of it."""
    explained: float
    """The part of the stalls' variance that the model explains (R squared)."""

    def stall(self, messages: float, size: float) -> float:
        """The seconds that an iteration waits with so many messages and bytes."""
        return max(0.0, self.seconds_per_message * messages + self.seconds_per_byte * size + self.seconds)


def fit(messages: Sequence[float], sizes: Sequence[float], stalls: Sequence[float]) -> Model:
    """The model of the least relative squares: of stalls [k] in seconds, of iterations with so many messages and bytes.

    Stalls of 0 tell nothing but that something hides them, and are left out. Raises ValueError for fewer than three.
    """
    stalled = np.asarray(stalls) > 0
    if stalled.sum() < 3:
        raise ValueError("three stalls at least are needed for three coefficients")
    terms = np.column_stack([np.asarray(messages), np.asarray(sizes), np.ones(len(stalled))])[stalled]
    seconds = np.asarray(stalls, dtype=float)[stalled]
    # Columns of like size, and errors in proportion: stalls of models that differ a thousandfold count alike.
    scale = np.abs(terms).max(axis=0)
    weighted = terms / scale / seconds[:, None]
    coefficients = np.linalg.lstsq(weighted, np.ones(len(seconds)), rcond=None)[0] / scale
    per_message, per_byte, always = map(float, coefficients)
    missed = np.maximum(terms @ coefficients, 0.0) - seconds
    explained = 1 - float((missed**2).sum() / ((seconds - seconds.mean()) ** 2).sum())
    return Model(per_message, per_byte, always, explained)
