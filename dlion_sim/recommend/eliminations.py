"""Reasons for the elimination of candidates."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dlion_sim.recommend.goal import Goal, spent
from dlion_sim.recommend.observed import Estimate, Observed
from dlion_sim.results.numbers import duration, number

_MIN_PROGRESS = 0.1
"""Minimum progress to the target for extrapolation."""


@dataclass(frozen=True)
class Elimination:
    """The elimination of a candidate."""

    rung: int | None
    """The rung after which it was eliminated, from 1; None: at the end."""
    reason: str
    is_relative: bool = False
    """Whether the reason is only that others are better."""


def own_elimination(rung: int, observation: Observed, goal: Goal, max_seconds: float) -> Elimination | None:
    """Elimination by a candidate's own run, which may last `max_seconds`; None if it may still win."""
    if observation.reached is not None:
        if observation.reaches_alone:
            return Elimination(
                rung,
                f"its workers reach the target at {duration(observation.seconds)}, before they exchange anything",
            )
        if goal.allows(observation.reached, observation.money):
            return None
        return Elimination(
            rung, f"reaches the target at {spent(observation.seconds, observation.money, ' for ')}; {goal.bound}"
        )
    if observation.problem:
        return Elimination(rung, observation.problem)
    if observation.until >= max_seconds * (1 - 1e-9):
        return Elimination(rung, f"{progress(observation)}, and no more; {goal.bound}")
    needed = observation.curve.lower_bound_seconds
    if observation.curve.last >= _MIN_PROGRESS and needed > max_seconds:
        money = "" if goal.deadline else f", which costs {number(observation.money_by(needed))}"
        return Elimination(rung, f"{progress(observation)}; needs {duration(needed)} at the least{money}; {goal.bound}")
    return None


def not_evaluated(rung: int, objective: float, goal: Goal, best: float) -> Elimination:
    """Its first evaluation costs more than the best candidate."""
    own, others = objective_text(goal, objective), objective_text(goal, best)
    reason = f"takes {own} until it is first evaluated; the best takes {others}"
    return Elimination(rung, reason, is_relative=True)


def slower(
    rung: int, observation: Observed, expected: Estimate, goal: Goal, best: str, of_best: Estimate
) -> Elimination:
    """Others are better."""
    if observation.reached is not None:
        way = f"reaches the target at {spent(observation.seconds, observation.money, ' for ')}"
    elif math.isinf(expected.seconds):
        way = progress(observation)
    else:
        qualifier = " at the least" if expected.is_lower_bound else " or so"
        late = "" if goal.allows(expected.seconds, expected.money) else f"; {goal.bound}"
        way = f"{progress(observation)}; needs {spent(expected.seconds, expected.money)}{qualifier}{late}"
    objective = goal.objective(of_best.seconds, of_best.money)
    reason = f"{way}; {best} needs {objective_text(goal, objective)}{' at the least' * of_best.is_lower_bound}"
    return Elimination(rung, reason, is_relative=True)


def progress(observation: Observed) -> str:
    """E.g. "35 % of the target's progress at 10 min"."""
    return f"{progress_share(observation)} of the target's progress at {duration(observation.seconds)}"


def progress_share(observation: Observed) -> str:
    """Progress to the target, e.g. "35 %"."""
    return f"{100 * max(0.0, observation.curve.last):.0f} %"


def objective_text(goal: Goal, objective: float) -> str:
    """The objective, time or money, as text."""
    return number(objective) if goal.minimizes_money else duration(objective)
