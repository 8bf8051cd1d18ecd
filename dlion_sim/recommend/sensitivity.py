"""What a wider bound and changes of the machines would change."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from dlion_sim.recommend.candidates import ALONE, Candidate
from dlion_sim.recommend.goal import LONGER, UNRESOLVED, best_first, compared, duration, spent
from dlion_sim.recommend.observed import Observed
from dlion_sim.recommend.options import Option, measured_option, of
from dlion_sim.recommend.own_changes import doubled, own_changes
from dlion_sim.recommend.race import Race, Start
from dlion_sim.scenario import Scenario, Schedule, Wan

_Bandwidth = Schedule | Literal["unlimited"] | None


@dataclass(frozen=True)
class Counterfactual:
    """The winner with a change, simulated with the first seed."""

    what: str
    start: Start
    problem: str = ""
    """Why it is not simulated."""


def counterfactuals(scenario: Scenario, winner: Candidate, until: float) -> list[Counterfactual]:
    """The changes to simulate, up to a virtual time (s).

    Of rented machines: one more machine, and twice the bandwidth of limited paths; of own ones see `own_changes`.
    """
    if winner.is_own:
        return [Counterfactual(what, Start(each, 0, until)) for what, each in own_changes(scenario, winner)]
    larger = _with_one_more(winner)
    joined = "" if larger.labels["system"] == winner.labels["system"] else f" and {larger.system}"
    changed = {f"one more machine{joined}": larger}
    wan = scenario.cluster.wan
    if len(winner.values["cluster.clouds"]) > 1 and wan is not None and (wider := _twice(wan)) is not None:
        values = {**winner.values, "cluster.wan": wider}
        changed["twice the WAN"] = replace(winner, name=f"{winner.name}-twice.the.wan", values=values)
    return [Counterfactual(what, Start(each, 0, until)) for what, each in changed.items()]


def _with_one_more(winner: Candidate) -> Candidate:
    """One more machine in the cheapest cloud; a single worker then has a peer and a system."""
    clouds: list[dict[str, Any]] = copy.deepcopy(winner.values["cluster.clouds"])
    (group,) = min((cloud["workers"] for cloud in clouds), key=lambda groups: float(groups[0]["price"]))
    group["count"] += 1
    labels = {**winner.labels, "count": f"{winner.labels['count']} and one more"}
    if winner.labels["system"] == ALONE:
        labels["system"] = winner.values["system"]["name"]
    return replace(
        winner,
        name=f"{winner.name}-one.more.machine",
        labels=labels,
        values={**winner.values, "cluster.clouds": clouds},
        per_hour=winner.per_hour + group["price"],
    )


def _twice(wan: Wan) -> dict[str, Any] | None:
    """The WAN with doubled bandwidths; None if it has none."""
    paths = [path.model_copy(update={"bandwidth": _doubled(path.bandwidth)}) for path in wan.paths]
    matrix = {a: {b: _doubled(each) for b, each in row.items()} for a, row in (wan.matrix or {}).items()}
    wider = wan.model_copy(update={"bandwidth": _doubled(wan.bandwidth), "matrix": matrix or None, "paths": paths})
    if wider == wan:
        return None
    return wider.model_dump(mode="json", by_alias=True, exclude_none=True)


def _doubled(bandwidth: _Bandwidth) -> _Bandwidth:
    return doubled(bandwidth) if isinstance(bandwidth, Schedule) else bandwidth


_MORE_SECONDS, _MORE_MONEY = 3600.0, 1.1
"""Relaxation of the bound: one more hour, 10 % more money."""


def sensitivity(race: Race, known: Sequence[Option], simulated: Sequence[Counterfactual]) -> list[dict[str, Any]]:
    """The change for the winner with a wider bound, and with each counterfactual that was simulated."""
    best = of(known, race.winners[0])
    entries = [] if race.goal.is_fastest else [_relaxed(race, best, known)]  # More time finds nothing faster.
    with_one = " with the same seed" if race.seeds > 1 else ""
    for each in simulated:
        if each.problem:
            entries.append({"with": each.what, "summary": f"not simulated: {each.problem}"})
            continue
        observation = race.observe(each.start)
        if isinstance(observation, str):
            entries.append({"with": each.what, "summary": f"fails: {observation}"})
            continue
        if observation.reached is None:
            entries.append({"with": each.what, "summary": "does not reach the target"})
            continue
        first = race.observed[best.candidate.name]
        changed = measured_option(each.start.candidate, [observation])
        entries.append(
            {
                "with": each.what,
                "run": observation.run.folder.name,
                "seconds": observation.seconds,
                **({"money": observation.money} if changed.is_priced else {}),
                "certainty": (certainty := _certainty(race, best.candidate, first, observation)),
                "summary": f"{changed.takes}, not {spent(first.seconds, first.money)}{with_one}: {certainty}",
            }
        )
    return entries


def _certainty(race: Race, winner: Candidate, first: Observed, changed: Observed) -> str:
    """How much longer or shorter a change takes with the first seed, and how sure that is."""
    how = compared(changed.seconds, first.seconds, *LONGER)
    difference = abs(changed.seconds - first.seconds)
    took = [each.seconds for each in race.successes(winner.name)]
    if not race.resolves(changed.seconds, first.seconds):
        return f"{how}, {UNRESOLVED}"
    if len(took) < 2:
        return f"{how}, of unknown significance: the winner has a single seed"
    if difference <= max(took) - min(took):
        return f"{how}, not significant: its seeds differ by {duration(max(took) - min(took))}"
    return f"{how}, more than its seeds differ"


def _relaxed(race: Race, best: Option, known: Sequence[Option]) -> dict[str, Any]:
    """The winner with the relaxed bound."""
    goal = race.goal
    wider = goal.relaxed(_MORE_SECONDS, _MORE_MONEY)
    others = [
        each for each in known if not each.is_lower_bound and not goal.allows(*each.means) and wider.allows(*each.means)
    ]
    new, *_ = best_first([best, *others], lambda each: race.resources(each.candidate, *each.means))
    what = {"with": "one more hour" if goal.deadline else "10 % more money", "winner": new.candidate.name}
    if new is best:
        return {**what, "summary": "the same"}
    about = "" if new.seeds else ", by estimate"
    return {**what, "summary": f"{new.candidate.in_words}: {new.takes}{about}"}
