"""Statistics of few seeds: intervals, means and ratios of censored durations, and paired tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
"""The level of all intervals."""

_COARSE = 0.5
"""A duration without an evaluation in this part of it is an upper bound only."""
Bound = Literal["", ">", "<", "<=", "~"]
Key = TypeVar("Key")


@dataclass(frozen=True)
class Estimate:
    """A value and its interval; NaN if unknown."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    bound: Bound = ""
    """">", "<" or "<=": the true value is more or less than `value`. "~": a ratio of such bounds."""
    pairs: int = 0
    """The number of pairs that it is over."""


@dataclass(frozen=True)
class Duration:
    """A duration (s) until a target; if the target was not `reached`, the duration of the run (right-censored).

    `gap` is the time before the end without an evaluation (interval-censored).
    """

    seconds: float
    reached: bool
    gap: float = 0.0

    @property
    def coarse(self) -> bool:
        """Whether the true duration may be less than half."""
        return self.gap > _COARSE * self.seconds * (1 + 1e-9)

    @property
    def is_untrained(self) -> bool:
        """Whether the target was reached before training."""
        return self.reached and self.seconds == 0

    @property
    def text(self) -> str:
        """As text, if it was reached: "12.5 s", "<= 5 s" or "before training"."""
        return "before training" if self.is_untrained else f"{'<= ' * self.coarse}{self.seconds:g} s"


def mean_of(values: Sequence[float], least: float = -math.inf) -> Estimate:
    """The mean, with its t-interval for two values or more, as far as that is not below the `least` possible value."""
    if not values:
        return Estimate()
    mean = float(np.mean(values))
    half = _half_width(values)
    return Estimate(mean, max(mean - half, least), mean + half)


def predicted(values: Sequence[float]) -> Estimate:
    """The mean, with the interval in which another value of the normal distribution lies; NaN for less than two."""
    mean, half = mean_of(values).value, _half_width(values) * math.sqrt(len(values) + 1)
    return Estimate(mean, mean - half, mean + half)


def restricted_mean(durations: Sequence[Duration]) -> Estimate:
    """The mean duration; a lower bound if some were not reached.

    If all of these were censored at one time, it is the restricted mean survival time (Royston and Parmar, 2013). If
    all were reached and some are coarse, it is an upper bound. Otherwise its interval extends at least by the mean gap
    on either side.
    """
    mean = mean_of([each.seconds for each in durations], least=0.0)
    if not all(each.reached for each in durations):
        return Estimate(mean.value, bound=">")
    if any(each.coarse for each in durations):
        return Estimate(mean.value, bound="<=")
    gap = mean_of([each.gap for each in durations]).value
    return Estimate(mean.value, min(mean.low, mean.value - gap), max(mean.high, mean.value + gap))


def ratio(numerators: Mapping[Key, Duration], denominators: Mapping[Key, Duration]) -> Estimate:
    """The geometric mean of the ratios of durations with the same key.

    Its interval is a t-interval of the logarithms of these ratios or, without common keys, Welch's of the difference of
    mean logarithms. If durations on one side were not reached, it is a bound; if on both, or if one is 0, it is
    unknown. If some are coarse it is rough, without an interval; otherwise the interval covers the gaps at least.
    """
    keys = [key for key in numerators if key in denominators]
    above = [numerators[key] for key in keys] or list(numerators.values())
    below = [denominators[key] for key in keys] or list(denominators.values())
    open_above, open_below = (not all(each.reached for each in side) for side in (above, below))
    if not above or not below or (open_above and open_below) or any(each.seconds <= 0 for each in (*above, *below)):
        return Estimate(pairs=len(keys))
    one, other = (np.array([each.seconds for each in side]) for side in (above, below))
    value = _geometric_mean(one) / _geometric_mean(other)
    if open_above or open_below:
        return Estimate(value, bound=">" if open_above else "<", pairs=len(keys))
    if any(each.coarse for each in (*above, *below)):
        return Estimate(value, bound="~", pairs=len(keys))
    one, other = np.log(one), np.log(other)
    half = _half_width(one - other) if keys else _half_width_of_difference(one, other)
    gaps = [np.mean([math.log1p(-each.gap / each.seconds) for each in side]) for side in (above, below)]
    factor = math.exp(max(half, *(-float(gap) for gap in gaps)))
    return Estimate(value, value / factor, value * factor, pairs=len(keys))


def paired_p(one: Mapping[Key, float], other: Mapping[Key, float]) -> float:
    """The p-value of a two-sided t-test of the pairs with the same key; NaN for less than two pairs."""
    keys = [key for key in one if key in other]
    differences = np.array([one[key] - other[key] for key in keys])
    if len(keys) < 2:
        return math.nan
    if np.ptp(differences) < 1e-12:  # without variance, where the test is 0 / 0
        return float(abs(differences[0]) < 1e-12)
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of several tests, corrected for their number (Holm, 1979); NaNs do not count."""
    known = [number for number, p in enumerate(p_values) if not math.isnan(p)]
    corrected, highest = list(p_values), 0.0
    for rank, number in enumerate(sorted(known, key=lambda number: p_values[number])):
        highest = max(highest, min(1.0, (len(known) - rank) * p_values[number]))
        corrected[number] = highest
    return corrected


def _geometric_mean(values: np.ndarray) -> float:
    return float(np.prod(values ** (1 / len(values))))


def _half_width(values: Sequence[float] | np.ndarray) -> float:
    """The half width of the t-interval of the mean; NaN for a single value."""
    if len(values) < 2:
        return math.nan
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * stats.sem(values))


def _half_width_of_difference(one: np.ndarray, other: np.ndarray) -> float:
    """The half width of Welch's t-interval of the difference of two means; NaN if one is of a single value."""
    if min(len(one), len(other)) < 2:
        return math.nan
    if not np.ptp(one) and not np.ptp(other):
        return 0.0
    interval = stats.ttest_ind(one, other, equal_var=False).confidence_interval(CONFIDENCE)
    return float(interval.high - interval.low) / 2
