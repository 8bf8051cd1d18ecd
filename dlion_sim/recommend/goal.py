"""The goal: the cheapest within a deadline, or the fastest within a budget; and how candidates are ranked by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from dlion_sim.results.numbers import number

_EQUAL = 0.0005
"""Of a value: what differs by less is written as the same."""
_UNITS = ((86400.0, "d", 2), (3600.0, "h", 2), (60.0, "min", 2), (1.0, "s", 0))


def duration(seconds: float) -> str:
    """E.g. "45 s", "12.5 min" or "6 h": the largest unit of which there are at least two, down to seconds."""
    size, unit, _ = next(each for each in _UNITS if seconds >= each[2] * each[0])
    return f"{number(seconds / size)} {unit}"


def compared(value: float, other: float, more: str, less: str) -> str:
    """How much more than another a value is, e.g. "12 % dearer", "as dear", "4.5 % cheaper"; "dearer" than nothing."""
    difference = value - other
    if abs(difference) <= _EQUAL * other:
        return f"as {more.removesuffix('er')}"
    part = f"{number(100 * abs(difference) / other, 2)} % " if other else ""
    return f"{part}{more if difference > 0 else less}"


_HOUR = 3600.0


@dataclass(frozen=True)
class Goal:
    """A bound on time or on money, of which there is one; of the other as little as possible is to be spent."""

    deadline: float | None = None
    """Virtual seconds within which the target is to be reached."""
    budget: float | None = None
    """What reaching it may cost, in what the prices are in."""

    def spent(self, seconds: float, money: float) -> float:
        """Of these, that of which little is to be spent."""
        return seconds if self.deadline is None else money

    def bounded(self, seconds: float, money: float) -> float:
        """Of these, that which is bounded."""
        return money if self.deadline is None else seconds

    def step(self, seconds: float, per_hour: float) -> float:
        """Of what little is to be spent of, what so much time takes on machines that cost so much an hour."""
        return self.spent(seconds, per_hour * seconds / _HOUR)

    def relaxed(self, seconds: float, factor: float) -> Goal:
        """With a deadline so much later, or a budget so many times as large."""
        if self.deadline is None:
            return Goal(budget=(self.budget or 0.0) * factor)
        return Goal(deadline=self.deadline + seconds)

    def allows(self, seconds: float, money: float) -> bool:
        """Whether so much is within the bound."""
        return money <= (self.budget or 0.0) if self.deadline is None else seconds <= self.deadline

    def seconds(self, resource: float, per_hour: float) -> float:
        """How long machines that cost so much an hour run for a `resource`, money or time, within the bound."""
        if self.deadline is None:
            return min(resource, self.most_seconds(per_hour))
        return min(self.deadline, resource / per_hour * _HOUR) if per_hour else self.deadline

    def most_seconds(self, per_hour: float) -> float:
        """How long machines that cost so much an hour may run at all."""
        if self.deadline is not None:
            return self.deadline
        return (self.budget or 0.0) / per_hour * _HOUR if per_hour else math.inf

    @property
    def bound(self) -> str:
        """In words, e.g. "deadline 6 h"."""
        return (
            f"budget {number(self.budget or 0.0)}" if self.deadline is None else f"deadline {duration(self.deadline)}"
        )

    def told(self) -> dict[str, Any]:
        """As JSON tells it."""
        if self.deadline is None:
            return {"budget": self.budget, "asked_for": "the fastest within the budget"}
        return {"deadline_seconds": self.deadline, "asked_for": "the cheapest within the deadline"}


Who = TypeVar("Who")
_APART = 0.999
"""Of what one interval between evaluations takes: less of it may be due to when the target was seen to be reached."""
_ALIKE = 1.1
"""Times the least: however long that interval is, who takes more takes more."""


@dataclass(frozen=True, order=True)
class Resources:
    """What decides between candidates, the first of it first."""

    shortcoming: int
    """What is put right by no time or money: who has less is better."""
    spent: float
    """Time (s) or money: that of which little is to be spent."""
    bounded: float
    """The other one."""
    step: float
    """What `spent` grows by from one evaluation to the next. When the target was reached between them is not known."""

    @classmethod
    def of(cls, goal: Goal, seconds: float, money: float, *, step: float, shortcoming: int = 0) -> Resources:
        """Of who takes so much time and money."""
        return cls(shortcoming, goal.spent(seconds, money), goal.bounded(seconds, money), step)

    def is_like(self, least: Resources) -> bool:
        """Whether it cannot be told from the one that takes least."""
        most = min(least.spent + _APART * self.step, _ALIKE * least.spent)
        return self.shortcoming == least.shortcoming and self.spent <= max(most, least.spent)


def best_first(who: Iterable[Who], takes: Callable[[Who], Resources]) -> list[Who]:
    """All of them, the best one first, by what each takes."""
    ranked = sorted(who, key=takes)
    first = alike(ranked, takes)
    return sorted(first, key=lambda each: (takes(each).bounded, takes(each).spent)) + ranked[len(first) :]


def alike(who: Iterable[Who], takes: Callable[[Who], Resources]) -> list[Who]:
    """The one that takes least, and those that cannot be told from it."""
    ranked = sorted(who, key=takes)
    return [each for each in ranked if takes(each).is_like(takes(ranked[0]))]
