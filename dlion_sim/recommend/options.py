"""Time, cost and traffic of each candidate: the mean over seeds, or an estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlion_sim.analysis.statistics import Estimate as Interval
from dlion_sim.analysis.statistics import mean_of, restricted_mean
from dlion_sim.recommend.candidates import Candidate
from dlion_sim.recommend.goal import Goal
from dlion_sim.recommend.observed import Observed, estimate, leader
from dlion_sim.recommend.race import Race
from dlion_sim.results.numbers import duration, number


@dataclass(frozen=True)
class Option:
    """What a candidate takes to reach the target; money is NaN without prices."""

    candidate: Candidate
    seconds: Interval
    money: Interval
    wan_bytes: Interval
    bytes: Interval
    """In total."""
    metric: Interval
    """At the target; NaN for an estimate."""
    seeds: int
    """Number of measured seeds; 0: an estimate."""
    missed: int
    """Number of seeds that missed the target, which the means exclude."""
    is_lower_bound: bool
    """Whether an estimate is a lower bound, as no candidate reached the target."""

    @property
    def means(self) -> tuple[float, float]:
        """Seconds and money."""
        return self.seconds.value, self.money.value

    @property
    def takes(self) -> str:
        """E.g. "3.2 h and 12.5"."""
        known = [(self.seconds.bound, duration(self.seconds.value))]
        if self.is_priced:
            known.append((self.money.bound, number(self.money.value)))
        return " and ".join(f"{bound} {value}".lstrip() for bound, value in known)

    @property
    def is_priced(self) -> bool:
        """Whether its money is known: machines have prices."""
        return not math.isnan(self.money.value)

    def as_json(self) -> dict[str, Any]:
        candidate = self.candidate
        return {
            "candidate": candidate.name,
            "in_words": candidate.in_words,
            **{key.removeprefix("system."): value for key, value in candidate.labels.items()},
            **({"per_hour": candidate.per_hour} if self.is_priced else {}),
            "seconds": _interval(self.seconds),
            **({"money": _interval(self.money)} if self.is_priced else {}),
            "wan_bytes": _interval(self.wan_bytes),
            "bytes": _interval(self.bytes),
            "metric": _interval(self.metric),
            "seeds": self.seeds,
            "missed": self.missed,
            **({} if self.seeds else {"estimated": "at the least" if self.is_lower_bound else "about"}),
        }

    def is_worse_than(self, other: Option) -> bool:
        """Whether the other one dominates it (Pareto)."""
        own, others = (
            (each.seconds.value, each.money.value if each.is_priced else 0.0, each.wan_bytes.value)
            for each in (self, other)
        )
        return others != own and all(a <= b for a, b in zip(others, own, strict=True))


def _interval(value: Interval) -> dict[str, float | str]:
    return {"mean": value.value, "low": value.low, "high": value.high, "bound": value.bound}


def options(race: Race) -> list[Option]:
    """The options of all observed candidates, in their order."""
    if not race.observed:
        return []
    winners = race.winners
    ahead = race.observed[winners[0].name] if winners else leader(race.observed.values())
    shown = [
        each for each in race.candidates if each.name in race.observed and not race.observed[each.name].reaches_alone
    ]
    found = [_option(each, race, ahead) for each in shown]
    return [each for each in found if math.isfinite(each.seconds.value)]


def of(known: Sequence[Option], candidate: Candidate) -> Option:
    """The option of a candidate."""
    return next(each for each in known if each.candidate.name == candidate.name)


def front(known: Sequence[Option]) -> list[Option]:
    """The Pareto front of measured options in time, money and WAN bytes, by time."""
    measured = [each for each in known if each.seeds]
    best = [each for each in measured if not any(map(each.is_worse_than, measured))]
    return sorted(best, key=lambda each: each.seconds.value)


def nearest_option(goal: Goal, known: Sequence[Option]) -> Option | None:
    """The option with the least of the bounded quantity, measured ones first."""
    ranked = [(not each.seeds, goal.constrained(each.seconds.value, each.money.value)) for each in known]
    return known[ranked.index(min(ranked))] if ranked else None


def measured_option(candidate: Candidate, reached: Sequence[Observed], missed: int = 0) -> Option:
    """The option of runs that reached the target; `missed` others did not."""
    seconds = restricted_mean([observation.took for observation in reached])

    def until(values: Sequence[float]) -> Interval:
        mean = mean_of(values, least=0.0)
        return Interval(mean.value, bound=seconds.bound) if seconds.bound else mean

    return Option(
        candidate,
        seconds=seconds,
        money=until([observation.money for observation in reached]),
        wan_bytes=until([observation.wan_bytes for observation in reached]),
        bytes=until([observation.bytes for observation in reached]),
        metric=mean_of([observation.metric for observation in reached]),
        seeds=len(reached),
        missed=missed,
        is_lower_bound=False,
    )


def _option(candidate: Candidate, race: Race, ahead: Observed) -> Option:
    observation = race.observed[candidate.name]
    reached = [each for each in race.finals.get(candidate.name, [observation]) if each.reached is not None]
    tried = race.seeds if candidate.name in race.finals else 1
    if reached:
        return measured_option(candidate, reached, missed=tried - len(reached))
    expected = estimate(observation, ahead)
    over_wan, carried = (
        _expected_bytes(observation, each, expected.seconds) for each in (observation.wan_bytes, observation.bytes)
    )
    return Option(
        candidate,
        seconds=Interval(expected.seconds),
        money=Interval(expected.money),
        wan_bytes=Interval(over_wan),
        bytes=Interval(carried),
        metric=Interval(),
        seeds=0,
        missed=0,
        is_lower_bound=expected.is_lower_bound,
    )


def _expected_bytes(observation: Observed, sent: float, seconds: float) -> float:
    """Bytes after `seconds` at the present rate.

    NaN if workers have not exchanged anything yet.
    """
    has_peers = len(observation.run.manifest["workers"]) > 1
    if not math.isfinite(seconds) or (has_peers and not observation.bytes):
        return math.nan
    return sent * seconds / observation.seconds
