"""What is recommended, as JSON will say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dlion_sim.analysis.stalls.attribution import LINKS, Stalls, in_a_sentence, stalls
from dlion_sim.recommend.data_placement import told_of_data
from dlion_sim.recommend.eliminations import part
from dlion_sim.recommend.goal import Goal, best_first, compared
from dlion_sim.recommend.observed import Observed
from dlion_sim.recommend.options import Option, front, least, of, options
from dlion_sim.recommend.race import Race
from dlion_sim.recommend.sensitivity import sensitivity
from dlion_sim.recommend.study import Study
from dlion_sim.results import participants


def document(study: Study) -> dict[str, Any]:
    """All that is known once a study was run.

    Intervals are 95 % t-intervals over seeds; times are virtual seconds, money is in what the prices are in.
    """
    race = study.race
    known = options(race)
    winners = race.winners
    told: dict[str, Any] = {
        "scenario": study.scenario.name,
        "goal": study.goal.told(),
        "target": {
            "metric": race.seen[known[0].candidate.name].run.metric.name if known else None,
            "value": study.target,
            "evaluated_on": "validation",
            "held_out": study.holds_out or study.scenario.workload.validation,
        },
        "data": told_of_data(study.scenario),
        "winner": _winner(study, known) if winners else None,
    }
    if winners:
        told |= {
            "told": sentence(study, known),
            "next_best": _next_best(study, known),
            "confidence": _confidence(race, study.seeds),
            "margins": sensitivity(race, known, study.counterfactuals),
        }
    else:
        told |= {"told": sentence(study, known), "needed": _needed(study, known)}
    return told | {
        "pareto": [each.told() for each in front(known)],
        "candidates": _candidates(study, known),
        "rejected": _rejected(study, known),
        "samples": {"simulated": study.samples, "exhaustive": _exhaustive(study, known), "margins": _of_margins(study)},
    }


def sentence(study: Study, known: Sequence[Option]) -> str:
    """What is recommended, or what would be needed."""
    goal = study.goal
    if study.race.winners:
        best = of(known, study.race.winners[0])
        words = ("cheapest", "cost", "fastest") if goal.deadline else ("fastest", "time", "cheapest")
        what, by, then = words
        count = len(study.race.alike)
        of_these = f", and of {count} that cannot be told apart by {by} the {then}" if count > 1 else ""
        return f"{best.candidate.in_words} is the {what}{of_these}: {best.takes} ({goal.bound})"
    needed = least(goal, known)
    if needed is None:
        return f"nothing comes to the target ({goal.bound}), and nothing learns enough to say what would"
    how = "" if needed.seeds else ", extrapolated" + (" and so at the least" if needed.is_least else "")
    return f"nothing comes to the target ({goal.bound}): it takes {needed.takes} with {needed.candidate.in_words}{how}"


def _winner(study: Study, known: Sequence[Option]) -> dict[str, Any]:
    winner = study.race.winners[0]
    finals = study.race.finals[winner.name]
    return {
        **of(known, winner).told(),
        "alike": [each.name for each in study.race.alike if each is not winner],
        "overrides": dict(winner.values),
        "runs": [
            {
                "run": seen.run.folder.name,
                "seconds": seen.reached,
                "money": seen.money,
                "wan_bytes": seen.wan_bytes,
                "bytes": seen.bytes,
                "metric": seen.metric,
            }
            for seen in finals
        ],
        "stalls": _stalls(finals[0]),
    }


def _stalls(seen: Observed) -> dict[str, Any]:
    """Where the time of a run's workers went, and for which link they waited most."""
    found = stalls(seen.run)
    seconds = found.seconds.sum()
    waits = found.waits[found.waits["kind"].isin(LINKS)].groupby(["sender", "receiver"], sort=False)["seconds"].sum()
    return {
        "shares": (seconds / (float(seconds.sum()) or 1.0)).to_dict(),
        "binding_link": None if waits.empty else _link(found, waits.idxmax()),
        "told": in_a_sentence(found),
    }


def _link(found: Stalls, ends: Any) -> dict[str, Any]:
    names = participants(found.run.manifest)
    return {"from": names[ends[0]], "to": names[ends[1]]}


def _next_best(study: Study, known: Sequence[Option]) -> dict[str, Any] | None:
    """Who comes after the winner, and why."""
    race, goal = study.race, study.goal
    best = of(known, race.winners[0])
    others = [each for each in known if each is not best]
    if not others:
        return None
    second = of(known, race.winners[1]) if len(race.winners) > 1 else min(others, key=lambda each: _order(goal, each))
    stalled = in_a_sentence(stalls(race.seen[second.candidate.name].run))
    return {**second.told(), "why": f"{_why_not(study, best, second)}; {stalled}"}


def _candidates(study: Study, known: Sequence[Option]) -> list[dict[str, Any]]:
    """What each takes, and why it is not the winner."""
    best = of(known, study.race.winners[0]) if study.race.winners else None
    return [{**each.told(), "why_not": "" if each is best else _why_not(study, best, each)} for each in known]


def _why_not(study: Study, best: Option | None, option: Option) -> str:
    left = study.race.left.get(option.candidate.name)
    if left is not None and (best is None or not left.is_behind):
        return left.reason
    assert best is not None
    money = compared(option.money.value, best.money.value, "dearer", "cheaper")
    seconds = compared(option.seconds.value, best.seconds.value, "slower", "faster")
    first, then = (money, seconds) if study.goal.deadline else (seconds, money)
    if option.candidate in study.race.alike:
        first = f"{first}, which evaluations do not tell apart"
    differences = f"{first}, {then}"
    if option.seeds:
        return differences
    return f"{differences}, by {part(study.race.seen[option.candidate.name])} of the way"


def _order(goal: Goal, option: Option) -> tuple[bool, bool, float]:
    seconds, money = option.seconds.value, option.money.value
    return not goal.allows(seconds, money), not option.seeds, goal.spent(seconds, money)


def _confidence(race: Race, seeds: int) -> dict[str, Any]:
    """In how many seeds the winner is the best of those that were in at the end."""
    winner, *others = race.winners
    wins = 0
    for seen in race.successes(winner.name):
        rivals = [
            (other, each) for other in others for each in race.successes(other.name) if _seed(each) == _seed(seen)
        ]
        (first, _), *_ = best_first(
            [(winner, seen), *rivals], lambda one: race.takes(one[0], one[1].seconds, one[1].money)
        )
        wins += first is winner
    reached = len(race.successes(winner.name))
    return {
        "seeds": seeds,
        "reaches_the_target": reached,
        "wins": wins,
        "against": [each.name for each in others],
        "told": _of_seeds(seeds, reached, len(race.winners), wins),
    }


def _of_seeds(seeds: int, reached: int, last: int, wins: int) -> str:
    if seeds == 1:
        return "only one seed was tried, which does not tell by how much others differ"
    best = f", and is the best of the last {last} with {wins}" if last > 1 else ""
    return f"it gets there with {reached} of {seeds} seeds{best}"


def _seed(seen: Observed) -> int:
    return int(seen.run.manifest["seed"])


def _needed(study: Study, known: Sequence[Option]) -> Mapping[str, Any] | None:
    needed = least(study.goal, known)
    return None if needed is None else needed.told()


def _rejected(study: Study, known: Sequence[Option]) -> list[dict[str, Any]]:
    """Who is out, after which rung and why; 0 is before the first, and None at the end."""
    before = [(each.name, 0, each.reason) for each in study.refused]
    on_the_way = [(name, left.rung, left.reason) for name, left in study.race.left.items()]
    winners = [of(known, each) for each in study.race.winners]
    at_the_end = [
        (each.candidate.name, None, f"takes {each.takes}; {winners[0].candidate.name} takes {winners[0].takes}")
        for each in winners[1:]
    ]
    return [
        {"candidate": name, "rung": rung, "reason": reason}
        for name, rung, reason in (*before, *on_the_way, *at_the_end)
    ]


def _exhaustive(study: Study, known: Sequence[Option]) -> int:
    """About how many samples all candidates would have taken with all seeds, each to the target or the bound."""
    total = 0.0
    estimates = {each.candidate.name: each.seconds.value for each in known}
    for candidate in study.candidates:
        seen = study.race.seen.get(candidate.name)
        if seen is not None and seen.until:
            most = study.goal.most_seconds(candidate.per_hour)
            total += study.seeds * seen.samples * min(most, estimates.get(candidate.name, most)) / seen.until
    return round(total)


def _of_margins(study: Study) -> int:
    """The samples of what was simulated beside the choice."""
    looked = [study.look(each.start) for each in study.counterfactuals]
    return sum(seen.samples for seen in looked if isinstance(seen, Observed))
