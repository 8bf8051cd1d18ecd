"""Why a candidate is out, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dlion_sim.recommend.goal import Goal, duration
from dlion_sim.recommend.observed import Estimate, Observed
from dlion_sim.results.numbers import number

_SURE = 0.1
"""Of the target's progress: before, how steeply somebody learns says nothing."""


@dataclass(frozen=True)
class Elimination:
    """Why a candidate is out."""

    rung: int | None
    """After which one, from 1; None: at the end."""
    reason: str
    is_behind: bool = False
    """Whether that is only that others do better."""


def out(rung: int, seen: Observed, goal: Goal, most_seconds: float) -> Elimination | None:
    """Why a run that may last so long (s) cannot be the answer; None where it can."""
    if seen.reached is not None:
        if seen.is_each_alone:
            return Elimination(
                rung, f"its workers come to the target at {duration(seen.seconds)}, before they exchange anything"
            )
        if goal.allows(seen.reached, seen.money):
            return None
        return Elimination(
            rung, f"reaches the target at {duration(seen.seconds)} for {number(seen.money)}; {goal.bound}"
        )
    if seen.problem:
        return Elimination(rung, seen.problem)
    if seen.until >= most_seconds * (1 - 1e-9):
        return Elimination(rung, f"{progress(seen)}, and no more; {goal.bound}")
    needed = seen.curve.least_seconds
    if seen.curve.last >= _SURE and needed > most_seconds:
        money = "" if goal.deadline else f", which costs {number(seen.money_by(needed))}"
        return Elimination(rung, f"{progress(seen)}; needs {duration(needed)} at the least{money}; {goal.bound}")
    return None


def unseen(rung: int, spent: float, goal: Goal, best: float) -> Elimination:
    """It takes more than the best before anything is known of it."""
    reason = f"takes {written(goal, spent)} until it is first evaluated; the best takes {written(goal, best)}"
    return Elimination(rung, reason, is_behind=True)


def behind(rung: int, seen: Observed, told: Estimate, goal: Goal, best: str, of_best: Estimate) -> Elimination:
    """Others do better."""
    if seen.reached is not None:
        way = f"reaches the target at {duration(seen.seconds)} for {number(seen.money)}"
    elif math.isinf(told.seconds):
        way = progress(seen)
    else:
        least = " at the least" if told.is_least else " or so"
        late = "" if goal.allows(told.seconds, told.money) else f"; {goal.bound}"
        way = f"{progress(seen)}; needs {duration(told.seconds)} and {number(told.money)}{least}{late}"
    spent = goal.spent(of_best.seconds, of_best.money)
    reason = f"{way}; {best} needs {written(goal, spent)}{' at the least' * of_best.is_least}"
    return Elimination(rung, reason, is_behind=True)


def progress(seen: Observed) -> str:
    """E.g. "35 % of the target's progress at 10 min"."""
    return f"{part(seen)} of the target's progress at {duration(seen.seconds)}"


def part(seen: Observed) -> str:
    """How much of the target's progress was made, e.g. "35 %"."""
    return f"{100 * max(0.0, seen.curve.last):.0f} %"


def written(goal: Goal, spent: float) -> str:
    """What was spent, time or money."""
    return number(spent) if goal.deadline else duration(spent)
