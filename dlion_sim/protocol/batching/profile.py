"""The cost model of a worker's iterations, and the split of a global batch for equal iteration times."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class CostFit:
    """Iteration time of a batch of b samples: alpha + beta * b seconds."""

    alpha: float
    beta: float

    def seconds(self, batch_size: int) -> float:
        return self.alpha + self.beta * batch_size


class CostModel:
    """Least-squares fit of the newest measurements (DLion, LBS controller: profiling by linear regression).

    A window is refitted every `refit_every` measurements, and at once after `surprises` predictions in succession that
    were off by more than the fraction `tolerance`: then earlier measurements are dropped, as the machine has changed.
    """

    def __init__(self, *, window: int, refit_every: int, tolerance: float, surprises: int) -> None:
        self._measurements: deque[tuple[int, float]] = deque(maxlen=window)
        self._refit_every = refit_every
        self._tolerance = tolerance
        self._surprises = surprises
        self._surprised = 0
        self._since_fit = 0
        self.fit: CostFit | None = None

    def add(self, measurements: Sequence[tuple[int, float]]) -> None:
        """Take in (batch size, seconds) measurements and refit where that is due."""
        for batch_size, seconds in measurements:
            self._measurements.append((batch_size, seconds))
            self._since_fit += 1
            predicted = self.fit.seconds(batch_size) if self.fit else seconds
            off = abs(seconds - predicted) > self._tolerance * predicted
            self._surprised = self._surprised + 1 if off else 0
        if self._surprised >= self._surprises:
            for _ in range(len(self._measurements) - self._surprised):
                self._measurements.popleft()
        elif self.fit and self._since_fit < self._refit_every:
            return
        self.fit = fit_cost(self._measurements, self.fit)
        self._since_fit = self._surprised = 0


def fit_cost(measurements: Sequence[tuple[int, float]], former: CostFit | None = None) -> CostFit:
    """The line through `measurements`, with alpha >= 0 and beta > 0.

    Where a line is not determined, because all batches were equal or noise bends it down, the samples' rate alone is
    fitted, beyond the alpha of the `former` fit as far as the times allow it.
    """
    batch_sizes, seconds = (np.array(column, dtype=float) for column in zip(*measurements, strict=True))
    spread = batch_sizes - batch_sizes.mean()
    if spread.any():
        beta = float(spread @ seconds / (spread @ spread))
        alpha = float(seconds.mean() - beta * batch_sizes.mean())
        if beta > 0 and alpha >= 0:
            return CostFit(alpha, beta)
    alpha = former.alpha if former and former.alpha < seconds.min() else 0.0
    return CostFit(alpha, float((seconds - alpha).sum() / batch_sizes.sum()))


def split(total: int, fits: Sequence[CostFit], limits: Sequence[int]) -> list[int]:
    """Local batch sizes that sum to `total` and make all workers' iterations take equally long.

    A worker's share is what it can process within the common iteration time T, (T - alpha) / beta: its relative compute
    power (RCP), with T chosen so that the shares sum to `total`. Each is at least 1 and at most its limit; where that
    leaves no way to sum to `total`, the nearest sum is taken. Rounded down, the rest by largest remainder, the lower
    worker first.
    """
    total = min(max(total, len(fits)), sum(limits))
    alphas = np.array([fit.alpha for fit in fits])
    betas = np.array([fit.beta for fit in fits])
    caps = np.array(limits, dtype=float)

    def shares(time: float) -> npt.NDArray[np.float64]:
        bounded: npt.NDArray[np.float64] = np.clip((time - alphas) / betas, 1.0, caps)
        return bounded

    low, high = 0.0, float((alphas + betas * caps).max())
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if shares(middle).sum() < total else (low, middle)
    exact = shares(high)
    whole = np.floor(exact).astype(int)
    by_remainder = np.argsort(-(exact - whole).round(9), kind="stable")  # rounding noise must not order equals
    open_to_more = [worker for worker in by_remainder if whole[worker] < limits[worker]]
    whole[open_to_more[: total - int(whole.sum())]] += 1
    return [int(share) for share in whole]
