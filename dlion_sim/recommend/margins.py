"""What more of each thing would bring: time, money, machines, bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlion_sim.recommend.goal import Goal
from dlion_sim.recommend.options import Option, of, of_seeds
from dlion_sim.recommend.study import Study
from dlion_sim.recommend.words import duration
from dlion_sim.results.numbers import number

_MORE_SECONDS, _MORE_MONEY = 3600.0, 1.1
"""What the bound is relaxed by: one more hour, 10 % more money."""


def margins(study: Study, known: Sequence[Option]) -> list[dict[str, Any]]:
    """What more of each thing would bring."""
    goal, best = study.goal, of(known, study.race.winners[0])
    told = [_relaxed(goal, best, known)]
    for each in study.counterfactuals:
        seen = study.look(each.start)
        if isinstance(seen, str) or seen.reached is None:
            told.append({"with": each.what, "told": "does not come to the target"})
            continue
        first = study.race.seen[best.candidate.name]
        changed = of_seeds(each.start.candidate, [seen])
        told.append(
            {
                "with": each.what,
                "run": seen.run.folder.name,
                "seconds": seen.seconds,
                "money": seen.money,
                "told": f"{changed.takes}, in place of {duration(first.seconds)} and {number(first.money)}",
            }
        )
    return told


def _relaxed(goal: Goal, best: Option, known: Sequence[Option]) -> dict[str, Any]:
    """Who would win within a wider bound."""
    wider = goal.relaxed(_MORE_SECONDS, _MORE_MONEY)
    spent = goal.spent(best.seconds.value, best.money.value)
    better = [
        each
        for each in known
        if not goal.allows(each.seconds.value, each.money.value)
        and wider.allows(each.seconds.value, each.money.value)
        and goal.spent(each.seconds.value, each.money.value) < spent
        and not each.is_least
    ]
    what = {"with": "one more hour" if goal.deadline else "10 % more money"}
    if not better:
        return {**what, "winner": best.candidate.name, "told": "the same"}
    new = min(better, key=lambda each: goal.spent(each.seconds.value, each.money.value))
    about = "" if new.seeds else ", by estimate"
    return {**what, "winner": new.candidate.name, "told": f"{new.candidate.in_words}: {new.takes}{about}"}
