"""The goal: the cheapest or fastest within a deadline, or the fastest within a budget; ranks of candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dlion_sim.errors import InputError
from dlion_sim.results.numbers import duration, number
from dlion_sim.scenario import DURATION, Scenario, tariff

_RELATIVE_TOLERANCE = 0.0005
"""Relative difference below which values are reported as equal."""


def spent(seconds: float, money: float, joined: str = " and ") -> str:
    """E.g. "3.2 h and 12.5"; "3.2 h" without prices."""
    return duration(seconds) if math.isnan(money) else f"{duration(seconds)}{joined}{number(money)}"


def compared(value: float, other: float, more: str, less: str) -> str:
    """How much more than another a value is, e.g. "12 % dearer", "as dear", "4.5 % cheaper"; "dearer" than nothing."""
    difference = value - other
    if abs(difference) <= _RELATIVE_TOLERANCE * other:
        return f"as {more.removesuffix('er')}"
    part = f"{number(100 * abs(difference) / other, 2)} % " if other else ""
    return f"{part}{more if difference > 0 else less}"


LONGER = "longer", "shorter"
"""A time compared with another one."""
UNRESOLVED = "not significant: at most one evaluation interval"
_HOUR = 3600.0


@dataclass(frozen=True)
class Goal:
    """A bound on either time or money; the other one is minimized, or with `is_fastest` time in any case."""

    deadline: float | None = None
    """Maximum virtual seconds to the target."""
    budget: float | None = None
    """Maximum cost of reaching the target, in the currency of the prices."""
    is_fastest: bool = False
    """Whether time is minimized within a deadline."""

    @property
    def minimizes_money(self) -> bool:
        """Whether the cheapest is wanted, not the fastest."""
        return self.deadline is not None and not self.is_fastest

    def objective(self, seconds: float, money: float) -> float:
        """The one to be minimized."""
        return money if self.minimizes_money else seconds

    def other(self, seconds: float, money: float) -> float:
        """The one that is not minimized."""
        return seconds if self.minimizes_money else money

    def constrained(self, seconds: float, money: float) -> float:
        """The one with the bound."""
        return money if self.deadline is None else seconds

    def step(self, seconds: float, per_hour: float) -> float:
        """The objective of running machines of this price for `seconds`."""
        return self.objective(seconds, per_hour * seconds / _HOUR)

    def relaxed(self, seconds: float, factor: float) -> Goal:
        """The goal with a later deadline, or a larger budget."""
        if self.deadline is None:
            return Goal(budget=(self.budget or 0.0) * factor)
        return replace(self, deadline=self.deadline + seconds)

    def allows(self, seconds: float, money: float) -> bool:
        """Whether they are within the bound."""
        return money <= (self.budget or 0.0) if self.deadline is None else seconds <= self.deadline

    def seconds(self, resource: float, per_hour: float) -> float:
        """How long machines of this price run for an amount of the objective, within the bound."""
        if self.minimizes_money:
            resource = resource / per_hour * _HOUR if per_hour else math.inf
        return min(resource, self.max_seconds(per_hour))

    def max_seconds(self, per_hour: float) -> float:
        """The maximum run time of machines of this price, which a scenario can have as its duration."""
        if self.deadline is not None:
            return self.deadline
        return min(DURATION.most, (self.budget or 0.0) / per_hour * _HOUR) if per_hour else math.inf

    @property
    def bound(self) -> str:
        """In words, e.g. "deadline 6 h"."""
        return (
            f"budget {number(self.budget or 0.0)}" if self.deadline is None else f"deadline {duration(self.deadline)}"
        )

    def as_json(self) -> dict[str, Any]:
        if self.deadline is None:
            return {"budget": self.budget, "asked_for": "the fastest within the budget"}
        what = "cheapest" if self.minimizes_money else "fastest"
        return {"deadline_seconds": self.deadline, "asked_for": f"the {what} within the deadline"}


def own_goal(scenario: Scenario, given: Goal | None) -> Goal:
    """The goal on the scenario's own machines: without prices always the fastest."""
    if given is None:
        if scenario.duration is None:
            raise InputError("the scenario has no duration", allowed="`deadline` 6h, or duration: 6 h")
        return Goal(deadline=scenario.duration, is_fastest=True)
    if tariff(scenario) is not None:
        return given
    if given.deadline is None:
        raise InputError(
            "the machines have no prices", file="`budget`", allowed="`deadline` 6h, or a price: of each of the workers"
        )
    return replace(given, is_fastest=True)


Item = TypeVar("Item")
_RESOLUTION = 0.999
"""Share of an evaluation interval: smaller differences may be due to the times of evaluations."""
_TIE_FACTOR = 1.1
"""Maximum ratio to the best of tied candidates, for any interval."""


@dataclass(frozen=True, order=True)
class Resources:
    """The sort key of candidates."""

    shortcoming: int
    """Compared before time and money; less is better."""
    objective: float
    """Time (s) or money, whichever is minimized."""
    other: float
    """The other one; NaN for money without prices."""
    step: float
    """Growth of the objective per evaluation interval, within which the target's time is unknown."""

    @classmethod
    def of(cls, goal: Goal, seconds: float, money: float, *, step: float, shortcoming: int = 0) -> Resources:
        """From time and money."""
        return cls(shortcoming, goal.objective(seconds, money), goal.other(seconds, money), step)

    def is_tied_with(self, best: Resources) -> bool:
        """Whether the difference to the best is not significant."""
        most = min(best.objective + _RESOLUTION * self.step, _TIE_FACTOR * best.objective)
        return self.shortcoming == best.shortcoming and self.objective <= max(most, best.objective)


def best_first(items: Iterable[Item], resources: Callable[[Item], Resources]) -> list[Item]:
    """All items, the best first; tied ones by the quantity that is not minimized."""
    ranked = sorted(items, key=resources)
    first = tied(ranked, resources)
    return sorted(first, key=lambda each: (resources(each).other, resources(each).objective)) + ranked[len(first) :]


def tied(items: Iterable[Item], resources: Callable[[Item], Resources]) -> list[Item]:
    """The best item, and those without a significant difference to it."""
    ranked = sorted(items, key=resources)
    return [each for each in ranked if resources(each).is_tied_with(resources(ranked[0]))]
