"""Verdicts on claims: measured differences, paired by seed, with intervals."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from dlion_sim.analysis import Group, duration_until, final, in_order
from dlion_sim.analysis.curves import worker_deviation
from dlion_sim.analysis.groups import is_named
from dlion_sim.analysis.statistics import Duration, Estimate, mean_of, paired_p, ratio
from dlion_sim.errors import InputError
from dlion_sim.results import Run
from dlion_sim.studies.reproduction.claims import Claim, Quantity, Rates

ONE_FOR_ALL, OWN = "one for all", "own"
REGIME = "rates"
"""The label of the regime, in place of the learning rate: one rate for all systems, or each system's own."""
_RATE = "workload.optimizer.learning_rate"
SIGNIFICANT = 0.05
DIRECTIONS = ("same", "same (one seed)", "no significant difference", "opposite", "opposite (one seed)", "unknown")
"""The directions of verdicts."""


@dataclass(frozen=True)
class Verdict:
    """The measured difference for a claim in one environment."""

    claim: Claim
    where: str
    """The environment: labels that differ from other verdicts on the claim."""
    one: float
    """The mean of the side that is claimed to be better; NaN if unknown."""
    other: float
    """The mean of the other side."""
    difference: Estimate
    """How much better, with the 95 % t-interval of the pairs: of accuracy and deviation in points (a fraction), else as
    a factor."""
    p: float
    """Of a two-sided paired t-test; NaN for less than two pairs, if a time was not reached, or if evaluations are too
    far apart to tell."""
    is_split: bool = False
    """Whether one side reached the target with every seed, and the other with none."""

    @property
    def direction(self) -> str:
        """The direction relative to the paper's, one of `DIRECTIONS`."""
        neutral = 0.0 if self.claim.by in ("accuracy", "deviation") else 1.0
        value = self.difference.value
        if math.isnan(value):
            return "unknown"
        way = "same" if value > neutral else "opposite"
        if self.difference.pairs < 2 and value != neutral:
            return f"{way} (one seed)"
        if (self.difference.bound, way) in ((">", "opposite"), ("<", "same")):  # Runs of other durations.
            return "no significant difference"
        # The interval of times covers the gaps between evaluations, too.
        is_significant = self.p < SIGNIFICANT and not self.difference.low <= neutral <= self.difference.high
        return way if self.is_split or is_significant else "no significant difference"


def by_regime(groups: Sequence[Group], rates: Rates) -> list[Group]:
    """The groups of each regime, in order; groups of both regimes occur twice, groups of none are left out."""
    one = {} if rates.one is None else dict.fromkeys(rates.own, rates.one)
    return in_order([*_of_regime(groups, ONE_FOR_ALL, one), *_of_regime(groups, OWN, rates.own)])


def _of_regime(groups: Sequence[Group], regime: str, rates: dict[str, float]) -> Iterator[Group]:
    for group in groups:
        labels = dict(group.labels)
        rate = labels.pop(_RATE, None)
        if rate is not None and float(rate) == rates.get(labels["system"]):
            yield Group({REGIME: regime, **labels}, group.runs)


def judged(claim: Claim, groups: Sequence[Group], target: float) -> list[Verdict]:
    """A verdict for each environment with both sides. Raises InputError if there is none."""
    pairs = list(_sides(claim, groups))
    if not pairs:
        raise InputError(f"no pair of runs fits the claim '{claim.says}'", path="claims")
    common = [dict(one.labels) for one, _ in pairs]
    differing = [key for key in common[0] if len({labels.get(key) for labels in common}) > 1]
    return [
        _verdict(claim, ", ".join(one.labels.get(key, "") for key in differing), one, other, target)
        for one, other in pairs
    ]


def _sides(claim: Claim, groups: Sequence[Group]) -> Iterator[tuple[Group, Group]]:
    """Pairs of groups of both sides that differ in the claim's labels only."""
    named = {*claim.of, *claim.than}
    others: dict[tuple[tuple[str, str], ...], Group] = {}
    for group in groups:
        if _has(group, claim.than):
            others[_other_labels(group, named)] = group
    for group in groups:
        other = others.get(_other_labels(group, named))
        if _has(group, claim.of) and other is not None and other is not group:
            yield group, other


def _has(group: Group, wanted: Mapping[str, str]) -> bool:
    return all(
        any(is_named(key, name) and group.labels[key] == value for key in group.labels)
        for name, value in wanted.items()
    )


def _other_labels(group: Group, named: set[str]) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in group.labels.items() if not any(is_named(key, name) for name in named))


def _verdict(claim: Claim, where: str, one: Group, other: Group, target: float) -> Verdict:
    if claim.by == "time":
        return _of_times(claim, where, one, other, target)
    mine = {key: _measured(run, claim.by) for key, run in one.samples.items()}
    theirs = {key: _measured(run, claim.by) for key, run in other.samples.items()}
    shared = [key for key in mine if key in theirs]
    means = mean_of(list(mine.values())).value, mean_of(list(theirs.values())).value
    if claim.by in ("accuracy", "deviation"):
        sign = 1.0 if claim.by == "accuracy" else -1.0
        mean = mean_of([sign * (mine[key] - theirs[key]) for key in shared])
        difference = Estimate(mean.value, mean.low, mean.high, pairs=len(shared))
        return Verdict(claim, where, *means, difference, paired_p(mine, theirs))
    as_durations = [{key: Duration(value, reached=True) for key, value in side.items()} for side in (mine, theirs)]
    above, below = as_durations if claim.by == "iterations" else reversed(as_durations)
    logs = [{key: math.log(value) for key, value in side.items() if value > 0} for side in (mine, theirs)]
    return Verdict(claim, where, *means, ratio(above, below), paired_p(*logs))


def _of_times(claim: Claim, where: str, one: Group, other: Group, target: float) -> Verdict:
    mine, theirs = ({key: duration_until(run, target) for key, run in side.samples.items()} for side in (one, other))
    p = math.nan
    if all(each.reached and each.seconds > 0 for each in (*mine.values(), *theirs.values())):
        logs = [{key: math.log(each.seconds) for key, each in side.items()} for side in (mine, theirs)]
        p = paired_p(*logs) if _differ_beyond_gaps(mine.values(), theirs.values()) else math.nan
    one_mean, other_mean = (mean_of([each.seconds for each in side.values()]).value for side in (mine, theirs))
    reached = [{each.reached for each in side.values()} for side in (mine, theirs)]
    is_split = reached in ([{True}, {False}], [{False}, {True}])
    return Verdict(claim, where, one_mean, other_mean, ratio(theirs, mine), p, is_split)


def _differ_beyond_gaps(mine: Collection[Duration], theirs: Collection[Duration]) -> bool:
    """Whether the slower side's mean is greater even if each of its times was at the evaluation before."""
    faster, slower = sorted((mine, theirs), key=lambda side: fmean(each.seconds for each in side))
    return fmean(each.seconds - each.gap for each in slower) > fmean(each.seconds for each in faster)


def _measured(run: Run, quantity: Quantity) -> float:
    match quantity:
        case "accuracy":
            mean = final(run)["mean"]
            return math.nan if mean is None else float(mean)
        case "deviation":
            # The mean, as single evaluations are noisy; without the first, where parameters are equal.
            return float(worker_deviation(run).iloc[1:].mean())
        case "bytes":
            return float(run.outcome["bytes_sent"])
        case _:
            return float(run.outcome["iterations"]["mean"])
