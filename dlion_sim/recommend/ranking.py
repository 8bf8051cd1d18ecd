"""Who is best: who takes least of what little is to be spent of; of those that cannot be told apart by that, who takes
least of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from dlion_sim.recommend.goal import Goal

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
