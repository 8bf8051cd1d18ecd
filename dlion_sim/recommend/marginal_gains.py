"""What more of each thing would bring: time, money, machines, bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlion_sim.recommend.options import Option, of, of_seeds
from dlion_sim.recommend.race import Race
from dlion_sim.recommend.ranking import best_first
from dlion_sim.recommend.study import Study
from dlion_sim.recommend.words import duration
from dlion_sim.results.numbers import number

_MORE_SECONDS, _MORE_MONEY = 3600.0, 1.1
"""What the bound is relaxed by: one more hour, 10 % more money."""


def margins(study: Study, known: Sequence[Option]) -> list[dict[str, Any]]:
    """What more of each thing would bring."""
    best = of(known, study.race.winners[0])
    told = [_relaxed(study.race, best, known)]
    with_one = " with the same seed" if study.seeds > 1 else ""
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
                "told": f"{changed.takes}, in place of {duration(first.seconds)} and {number(first.money)}{with_one}",
            }
        )
    return told


def _relaxed(race: Race, best: Option, known: Sequence[Option]) -> dict[str, Any]:
    """Who would win within a wider bound."""
    goal = race.goal
    wider = goal.relaxed(_MORE_SECONDS, _MORE_MONEY)
    others = [
        each for each in known if not each.is_least and not goal.allows(*each.means) and wider.allows(*each.means)
    ]
    new, *_ = best_first([best, *others], lambda each: race.takes(each.candidate, *each.means))
    what = {"with": "one more hour" if goal.deadline else "10 % more money", "winner": new.candidate.name}
    if new is best:
        return {**what, "told": "the same"}
    about = "" if new.seeds else ", by estimate"
    return {**what, "told": f"{new.candidate.in_words}: {new.takes}{about}"}
