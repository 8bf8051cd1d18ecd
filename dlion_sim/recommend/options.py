"""What each candidate comes to, as far as it was seen: the mean over seeds, or an estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlion_sim.analysis.statistics import Estimate as Interval
from dlion_sim.analysis.statistics import mean_of, restricted_mean
from dlion_sim.recommend.candidates import Candidate
from dlion_sim.recommend.goal import Goal, duration
from dlion_sim.recommend.observed import Observed, estimate, leader
from dlion_sim.recommend.race import Race
from dlion_sim.results.numbers import number


@dataclass(frozen=True)
class Option:
    """What a candidate takes to the target."""

    candidate: Candidate
    seconds: Interval
    money: Interval
    wan_bytes: Interval
    bytes: Interval
    """In all."""
    metric: Interval
    """At the target; NaN of an estimate."""
    seeds: int
    """Over how many seeds this was measured; 0: it is an estimate."""
    missed: int
    """With how many more it did not come to the target, of which the means tell nothing."""
    is_least: bool
    """Of an estimate: whether it is too low, as nobody came to the target."""

    @property
    def means(self) -> tuple[float, float]:
        """Seconds and money."""
        return self.seconds.value, self.money.value

    @property
    def takes(self) -> str:
        """E.g. "3.2 h and 12.5"."""
        seconds, money = duration(self.seconds.value), number(self.money.value)
        return f"{self.seconds.bound} {seconds}".lstrip() + " and " + f"{self.money.bound} {money}".lstrip()

    def told(self) -> dict[str, Any]:
        """As JSON tells it."""
        candidate = self.candidate
        return {
            "candidate": candidate.name,
            "in_words": candidate.in_words,
            **{key.removeprefix("system."): value for key, value in candidate.labels.items()},
            "per_hour": candidate.per_hour,
            "seconds": _interval(self.seconds),
            "money": _interval(self.money),
            "wan_bytes": _interval(self.wan_bytes),
            "bytes": _interval(self.bytes),
            "metric": _interval(self.metric),
            "seeds": self.seeds,
            "missed": self.missed,
            **({} if self.seeds else {"estimated": "at the least" if self.is_least else "about"}),
        }

    def is_worse_than(self, other: Option) -> bool:
        """Whether the other takes no more of anything, and less of something."""
        own, others = ((each.seconds.value, each.money.value, each.wan_bytes.value) for each in (self, other))
        return others != own and all(a <= b for a, b in zip(others, own, strict=True))


def _interval(value: Interval) -> dict[str, float | str]:
    return {"mean": value.value, "low": value.low, "high": value.high, "bound": value.bound}


def options(race: Race) -> list[Option]:
    """What all candidates take of whom anything is known, in their order."""
    if not race.seen:
        return []
    winners = race.winners
    ahead = race.seen[winners[0].name] if winners else leader(race.seen.values())
    shown = [each for each in race.candidates if each.name in race.seen and not race.seen[each.name].is_each_alone]
    found = [_option(each, race, ahead) for each in shown]
    return [each for each in found if math.isfinite(each.seconds.value)]


def of(known: Sequence[Option], candidate: Candidate) -> Option:
    """That of a candidate."""
    return next(each for each in known if each.candidate.name == candidate.name)


def front(known: Sequence[Option]) -> list[Option]:
    """Those that were measured, and that none other is better than in time, money and WAN bytes; by time."""
    measured = [each for each in known if each.seeds]
    best = [each for each in measured if not any(map(each.is_worse_than, measured))]
    return sorted(best, key=lambda each: each.seconds.value)


def least(goal: Goal, known: Sequence[Option]) -> Option | None:
    """Who takes least of what is bounded: of those that were measured, if there are any."""
    ranked = [(not each.seeds, goal.bounded(each.seconds.value, each.money.value)) for each in known]
    return known[ranked.index(min(ranked))] if ranked else None


def of_seeds(candidate: Candidate, reached: Sequence[Observed], missed: int = 0) -> Option:
    """What the runs of a candidate took that came to the target, beside which so many did not."""
    seconds = restricted_mean([seen.took for seen in reached])

    def until(values: Sequence[float]) -> Interval:
        mean = mean_of(values)
        return Interval(mean.value, bound=seconds.bound) if seconds.bound else mean

    return Option(
        candidate,
        seconds=seconds,
        money=until([seen.money for seen in reached]),
        wan_bytes=until([seen.wan_bytes for seen in reached]),
        bytes=until([seen.bytes for seen in reached]),
        metric=mean_of([seen.metric for seen in reached]),
        seeds=len(reached),
        missed=missed,
        is_least=False,
    )


def _option(candidate: Candidate, race: Race, ahead: Observed) -> Option:
    seen = race.seen[candidate.name]
    reached = [each for each in race.finals.get(candidate.name, [seen]) if each.reached is not None]
    tried = race.seeds if candidate.name in race.finals else 1
    if reached:
        return of_seeds(candidate, reached, missed=tried - len(reached))
    told = estimate(seen, ahead)
    over_wan, carried = (_will_send(seen, each, told.seconds) for each in (seen.wan_bytes, seen.bytes))
    return Option(
        candidate,
        seconds=Interval(told.seconds),
        money=Interval(told.money),
        wan_bytes=Interval(over_wan),
        bytes=Interval(carried),
        metric=Interval(),
        seeds=0,
        missed=0,
        is_least=told.is_least,
    )


def _will_send(seen: Observed, sent: float, seconds: float) -> float:
    """The bytes by then, of which so many were `sent` so far, if all goes on like that.

    NaN where nothing is known of what peers will send each other.
    """
    has_peers = len(seen.run.manifest["workers"]) > 1
    if not math.isfinite(seconds) or (has_peers and not seen.bytes):
        return math.nan
    return sent * seconds / seen.seconds
