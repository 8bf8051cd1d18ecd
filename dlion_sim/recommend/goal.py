"""What is asked for: the cheapest that is in time, or the fastest that the money is enough for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dlion_sim.recommend.words import duration
from dlion_sim.results.numbers import number

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
