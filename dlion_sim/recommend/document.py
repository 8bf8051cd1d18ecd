"""The content of recommendation.json."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dlion_sim.analysis.stalls.attribution import LINKS, Stalls, stalls, summary_sentence
from dlion_sim.recommend.confidence import confidence
from dlion_sim.recommend.data_placement import data_placement
from dlion_sim.recommend.effort import Effort
from dlion_sim.recommend.eliminations import progress_share
from dlion_sim.recommend.goal import LONGER, UNRESOLVED, Goal, compared
from dlion_sim.recommend.observed import Observed
from dlion_sim.recommend.options import Option, front, nearest_option, of, options
from dlion_sim.recommend.sensitivity import sensitivity
from dlion_sim.recommend.study import Study
from dlion_sim.results import participants
from dlion_sim.results.numbers import in_bytes


def document(study: Study) -> dict[str, Any]:
    """The results of a study.

    Intervals are 95 % t-intervals over seeds; times are virtual seconds, money is in the currency of the prices.
    """
    race = study.race
    known = options(race)
    winners = race.winners
    content: dict[str, Any] = {
        "scenario": study.scenario.name,
        "goal": study.goal.as_json(),
        "target": {
            "metric": race.observed[known[0].candidate.name].run.metric.name if known else None,
            "value": study.target,
            "proposed": study.proposal,
            "evaluated_on": "validation",
            "held_out": study.held_out_share or study.scenario.workload.validation,
        },
        **({"effort": _effort(study.effort)} if study.effort else {}),
        "data": data_placement(study.scenario, own=study.is_own),
        "winner": _winner(study, known) if winners else None,
    }
    if winners:
        content |= {
            "summary": sentence(study, known),
            "next_best": _next_best(study, known),
            "confidence": confidence(race, study.seeds, known),
            "sensitivity": sensitivity(race, known, study.counterfactuals),
        }
    else:
        content |= {"summary": sentence(study, known), "needed": _needed(study, known)}
    return content | {
        "pareto": [each.as_json() for each in front(known)],
        "candidates": _candidates(study, known),
        "rejected": _rejected(study, known),
        "samples": {
            "simulated": study.samples,
            "exhaustive": _exhaustive_samples(study, known),
            "sensitivity": _sensitivity_samples(study),
        },
    }


def sentence(study: Study, known: Sequence[Option]) -> str:
    """The recommendation in a sentence, or what the target would require."""
    goal = study.goal
    if study.race.winners:
        best = of(known, study.race.winners[0])
        words = ("cheapest", "cost", "fastest") if goal.minimizes_money else ("fastest", "time", "cheapest")
        what, by, then = words
        count = len(study.race.tied)
        of_these = f", and of {count} without a significant difference in {by} the {then}" if count > 1 else ""
        if not best.is_priced:
            others = [each for each in known if each.seeds and each is not best]
            as_fast = [each for each in others if not study.race.resolves(each.seconds.value, best.seconds.value)]
            of_these = _as_fast(best, as_fast)
        return f"{best.candidate.in_words} is the {what}{of_these}: {best.takes} ({goal.bound})"
    needed = nearest_option(goal, known)
    if needed is None:
        return f"no candidate reaches the target ({goal.bound}), and none learns enough for an estimate"
    how = "" if needed.seeds else ", extrapolated" + (" and so at the least" if needed.is_lower_bound else "")
    return (
        f"no candidate reaches the target ({goal.bound}): it takes {needed.takes} with {needed.candidate.in_words}{how}"
    )


def _as_fast(best: Option, others: Sequence[Option]) -> str:
    """That the best, without prices, is not significantly faster than others, and the fewest bytes of one of them."""
    if not others:
        return ""
    least = min(others, key=lambda each: each.wan_bytes.value)
    words = f", though not significantly faster than {len(others)} other{'s' * (len(others) > 1)}"
    if least.wan_bytes.value >= best.wan_bytes.value:
        return words
    return f"{words}, of which {least.candidate.in_words} sends {_over_wan(least, best)}"


def _over_wan(option: Option, other: Option) -> str:
    return f"{in_bytes(option.wan_bytes.value)} over the WAN, not {in_bytes(other.wan_bytes.value)}"


def _effort(effort: Effort) -> dict[str, Any]:
    return {"seconds": effort.seconds, "left_out": effort.left_out, "summary": effort.summary}


def _winner(study: Study, known: Sequence[Option]) -> dict[str, Any]:
    winner = study.race.winners[0]
    finals = study.race.finals[winner.name]
    return {
        **of(known, winner).as_json(),
        "tied": [each.name for each in study.race.tied if each is not winner],
        "overrides": dict(winner.values),
        "runs": [
            {
                "run": observation.run.folder.name,
                "seconds": observation.reached,
                **({} if math.isnan(observation.money) else {"money": observation.money}),
                "wan_bytes": observation.wan_bytes,
                "bytes": observation.bytes,
                "metric": observation.metric,
            }
            for observation in finals
        ],
        "stalls": _stalls(finals[0]),
    }


def _stalls(observation: Observed) -> dict[str, Any]:
    """Stalls of a run's workers, and the link that they waited most for."""
    found = stalls(observation.run)
    seconds = found.seconds.sum()
    waits = found.waits[found.waits["kind"].isin(LINKS)].groupby(["sender", "receiver"], sort=False)["seconds"].sum()
    return {
        "shares": (seconds / (float(seconds.sum()) or 1.0)).to_dict(),
        "binding_link": None if waits.empty else _link(found, waits.idxmax()),
        "summary": summary_sentence(found),
    }


def _link(found: Stalls, ends: Any) -> dict[str, Any]:
    names = participants(found.run.manifest)
    return {"from": names[ends[0]], "to": names[ends[1]]}


def _next_best(study: Study, known: Sequence[Option]) -> dict[str, Any] | None:
    """The second-best candidate, and why it is second."""
    race, goal = study.race, study.goal
    best = of(known, race.winners[0])
    others = [each for each in known if each is not best]
    if not others:
        return None
    second = of(known, race.winners[1]) if len(race.winners) > 1 else min(others, key=lambda each: _order(goal, each))
    stalled = summary_sentence(stalls(race.observed[second.candidate.name].run))
    return {**second.as_json(), "why": f"{_why_not(study, best, second)}; {stalled}"}


def _candidates(study: Study, known: Sequence[Option]) -> list[dict[str, Any]]:
    """Time and cost of each candidate, and why it is not the winner."""
    best = of(known, study.race.winners[0]) if study.race.winners else None
    return [{**each.as_json(), "why_not": "" if each is best else _why_not(study, best, each)} for each in known]


def _why_not(study: Study, best: Option | None, option: Option) -> str:
    elimination = study.race.eliminated.get(option.candidate.name)
    if elimination is not None and (best is None or not elimination.is_relative):
        return elimination.reason
    assert best is not None
    money = compared(option.money.value, best.money.value, "dearer", "cheaper") if best.is_priced else ""
    seconds = compared(option.seconds.value, best.seconds.value, *LONGER)
    is_told_apart = study.race.resolves(option.seconds.value, best.seconds.value)
    first, then = (money, seconds) if study.goal.minimizes_money else (seconds, money)
    if option.candidate in study.race.tied:
        first = f"{first}, which is not significant"
    elif first == seconds and option.seeds and not is_told_apart:
        first = f"{first}, {UNRESOLVED}"
    if option.seeds and not best.is_priced:
        then = _over_wan(option, best)
    differences = f"{first}, {then}" if then else first
    if option.seeds:
        return differences
    return f"{differences}, estimated at {progress_share(study.race.observed[option.candidate.name])} of the progress"


def _order(goal: Goal, option: Option) -> tuple[bool, bool, float]:
    seconds, money = option.seconds.value, option.money.value
    return not goal.allows(seconds, money), not option.seeds, goal.objective(seconds, money)


def _needed(study: Study, known: Sequence[Option]) -> Mapping[str, Any] | None:
    needed = nearest_option(study.goal, known)
    return None if needed is None else needed.as_json()


def _rejected(study: Study, known: Sequence[Option]) -> list[dict[str, Any]]:
    """Eliminated candidates with rung and reason; rung 0 is before the first, None after the last."""
    before = [(each.name, 0, each.reason) for each in study.refused]
    in_rungs = [(name, elimination.rung, elimination.reason) for name, elimination in study.race.eliminated.items()]
    winners = [of(known, each) for each in study.race.winners]
    at_the_end = [
        (each.candidate.name, None, f"takes {each.takes}; {winners[0].candidate.name} takes {winners[0].takes}")
        for each in winners[1:]
    ]
    return [
        {"candidate": name, "rung": rung, "reason": reason} for name, rung, reason in (*before, *in_rungs, *at_the_end)
    ]


def _exhaustive_samples(study: Study, known: Sequence[Option]) -> int:
    """Approximate number of samples for all candidates with all seeds, each to the target or the bound."""
    total = 0.0
    estimates = {each.candidate.name: each.seconds.value for each in known}
    for candidate in study.candidates:
        observation = study.race.observed.get(candidate.name)
        if observation is not None and observation.until:
            most = study.goal.max_seconds(candidate.per_hour)
            total += (
                study.seeds * observation.samples * min(most, estimates.get(candidate.name, most)) / observation.until
            )
    return round(total)


def _sensitivity_samples(study: Study) -> int:
    observed = [study.observe(each.start) for each in study.counterfactuals]
    return sum(observation.samples for observation in observed if isinstance(observation, Observed))
