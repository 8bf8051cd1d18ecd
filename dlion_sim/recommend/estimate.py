"""How long a run will need that was seen for a while, by one that was seen for longer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dlion_sim.recommend.observed import Observed


@dataclass(frozen=True)
class Estimate:
    """What reaching the target takes."""

    seconds: float
    """Infinite where nothing was learned yet."""
    money: float
    is_measured: bool
    """Whether a simulation came to the target, and so long ago as this says."""
    is_least: bool = False
    """Whether it takes longer than this: nobody has come to the target, by which the rest could be told."""


def leader(seen: Iterable[Observed]) -> Observed:
    """Who is farthest; of several the one that was evaluated most often on the way, whose curve tells most."""
    return max(seen, key=lambda each: (min(each.curve.last, 1.0), len(each.curve.times)))


def estimate(seen: Observed, ahead: Observed) -> Estimate:
    """What the target takes: as many times what it takes whom is `ahead` as it took to come as far as this.

    So all are taken to learn along one curve, faster or slower. Where nobody has come to the target, the rest of the
    way is taken as steep as the steepest part of the way so far, so that the estimate is too low.
    """
    if seen.reached is not None:
        return Estimate(seen.reached, seen.money, is_measured=True)
    if not seen.curve.is_known:
        return Estimate(math.inf, math.inf, is_measured=False)
    own, other = seen.curve, ahead.curve
    seconds = max(own.least_seconds, seen.until)
    if own.last > 0 and (of_ahead := other.seconds_to(own.last)) > 0:
        whole = other.least_seconds if ahead.reached is None else ahead.reached
        seconds = max(seconds, own.seconds_to(own.last) * whole / of_ahead)
    money = seen.money_by(seconds) if math.isfinite(seconds) else math.inf
    return Estimate(seconds, money, is_measured=False, is_least=ahead.reached is None)
