"""What a wider bound and changes of the machines would change."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Literal

from dlion_sim.analysis.statistics import predicted
from dlion_sim.recommend.candidates import ALONE, Candidate
from dlion_sim.recommend.data_placement import data_are_local
from dlion_sim.recommend.goal import LONGER, UNRESOLVED, best_first, compared, spent
from dlion_sim.recommend.observed import Observed
from dlion_sim.recommend.options import Option, measured_option, of
from dlion_sim.recommend.race import Race, Start
from dlion_sim.results.numbers import duration
from dlion_sim.scenario import DURATION, Scenario, Schedule, Wan
from dlion_sim.scenario.loading import to_data

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

    Of rented machines: one more machine, and twice the bandwidth of limited paths; of own ones see `_own_changes`.
    """
    if winner.is_own:
        return [Counterfactual(what, Start(each, 0, until)) for what, each in _own_changes(scenario, winner)]
    larger = _with_one_more_rented(winner)
    joined = "" if larger.labels["system"] == winner.labels["system"] else f" and {larger.system}"
    changed = {f"one more machine{joined}": larger}
    wan = scenario.cluster.wan
    if len(winner.values["cluster.clouds"]) > 1 and wan is not None and (wider := _twice(wan)) is not None:
        changed["twice the WAN"] = _with(winner, "twice.the.wan", {"cluster.wan": wider})
    return [Counterfactual(what, Start(each, 0, until)) for what, each in changed.items()]


def _with_one_more_rented(winner: Candidate) -> Candidate:
    """One more machine in the cheapest cloud; a single worker then has a peer and a system."""
    clouds: list[dict[str, Any]] = copy.deepcopy(winner.values["cluster.clouds"])
    (group,) = min((cloud["workers"] for cloud in clouds), key=lambda groups: float(groups[0]["price"]))
    group["count"] += 1
    labels = {"count": f"{winner.labels['count']} and one more"}
    if winner.labels["system"] == ALONE:
        labels["system"] = winner.values["system"]["name"]
    return _with(winner, "one.more.machine", {"cluster.clouds": clouds}, group["price"], **labels)


def _twice(wan: Wan) -> dict[str, Any] | None:
    """The WAN with doubled bandwidths; None if it has none."""
    paths = [path.model_copy(update={"bandwidth": _doubled(path.bandwidth)}) for path in wan.paths]
    matrix = {a: {b: _doubled(each) for b, each in row.items()} for a, row in (wan.matrix or {}).items()}
    wider = wan.model_copy(update={"bandwidth": _doubled(wan.bandwidth), "matrix": matrix or None, "paths": paths})
    if wider == wan:
        return None
    return wider.model_dump(mode="json", by_alias=True, exclude_none=True)


def _doubled(bandwidth: _Bandwidth) -> _Bandwidth:
    if not isinstance(bandwidth, Schedule):
        return bandwidth
    return Schedule(tuple((time, 2 * value) for time, value in bandwidth.steps), bandwidth.repeat)


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
        saves = f"; {compared(observation.money, first.money, 'dearer', 'cheaper')}" if changed.is_priced else ""
        entries.append(
            {
                "with": each.what,
                "run": observation.run.folder.name,
                "seconds": observation.seconds,
                **({"money": observation.money} if changed.is_priced else {}),
                "certainty": (certainty := _certainty(race, best.candidate, first, observation)),
                "summary": f"{changed.takes}, not {spent(first.seconds, first.money)}{with_one}: {certainty}{saves}",
            }
        )
    return entries


def _certainty(race: Race, winner: Candidate, first: Observed, changed: Observed) -> str:
    """How much longer or shorter a change takes with the first seed; and how sure that is, by an evaluation interval,
    and by the 95 % prediction interval of the winner's seeds."""
    how = compared(changed.seconds, first.seconds, *LONGER)
    difference = abs(changed.seconds - first.seconds)
    took = [each.seconds for each in race.successes(winner.name)]
    if not difference:
        return how
    if not race.resolves(changed.seconds, first.seconds):
        return f"{how}, {UNRESOLVED}"
    if len(took) < 2:
        return f"{how}, of unknown significance: the winner has a single seed"
    another = predicted(took)
    low, high = max(0.0, another.low - race.evaluate_every), another.high + race.evaluate_every
    is_significant = not low <= changed.seconds <= high
    seeds = f"with another seed it takes {duration(low)} to {duration(high)}"
    return f"{how}, {'' if is_significant else 'not '}significant: {seeds}"


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


_MOST_CLOUDS = 4
"""Maximum number of clouds that are changed: those with the most workers."""


def _own_changes(scenario: Scenario, winner: Candidate) -> Iterator[tuple[str, Candidate]]:
    """The changes, as text, with the changed winner; its scenario may be invalid."""
    clouds = [cloud.name for cloud in scenario.cluster.clouds]
    largest = sorted(clouds, key=lambda name: -_workers(scenario, {name}))[:_MOST_CLOUDS]
    changed = [name for name in clouds if name in largest]
    for name in changed[:1] if len(clouds) == 2 else changed:
        if wan := _wan(scenario, {*clouds}, wider=name):
            where = "the WAN" if len(clouds) == 2 else f"the WAN of {name}"
            yield f"twice {where}", _with(winner, f"twice.the.wan-{name}", {"cluster.wan": wan})
    if len(clouds) > 1 and not data_are_local(scenario):
        for name in changed:
            yield _without(scenario, winner, name)
    for name in changed:
        yield f"one more machine in {name}", _with_one_more(scenario, winner, name)
    size = scenario.workload.batch_size
    for what, other in (("twice the batch size", 2 * size), ("half the batch size", size // 2)):
        if other:
            yield f"{what} ({other})", _with(winner, f"batch{other}", {"workload.batch_size": other})


def _with(winner: Candidate, name: str, values: dict[str, Any], per_hour: float = 0.0, **labels: str) -> Candidate:
    """The winner with other values, and a higher price."""
    return replace(
        winner,
        name=f"{winner.name}-{name}",
        labels={**winner.labels, **labels},
        values={**winner.values, **values},
        per_hour=winner.per_hour + per_hour,
    )


def _without(scenario: Scenario, winner: Candidate, name: str) -> tuple[str, Candidate]:
    """Without a cloud; a single worker that remains is alone."""
    others = {cloud.name for cloud in scenario.cluster.clouds} - {name}
    clouds = [cloud for cloud in to_data(scenario)["cluster"]["clouds"] if cloud["name"] in others]
    wan = _wan(scenario, others) if len(others) > 1 else None
    saved = sum(group.count * (group.price or 0.0) for group in _groups(scenario, name))
    values: dict[str, Any] = {"cluster.clouds": clouds, "cluster.wan": wan}
    labels = {}
    if _workers(scenario, others) == 1:
        values["system"], labels = {"name": "baseline"}, {"system": ALONE}
    what = f"all clouds but {name}" + (", a single worker" if labels else "")
    return what, _with(winner, f"without-{name}", values, -saved, **labels)


def _with_one_more(scenario: Scenario, winner: Candidate, name: str) -> Candidate:
    """One more machine of the most frequent kind in a cloud."""
    clouds = copy.deepcopy(to_data(scenario)["cluster"]["clouds"])
    groups = _groups(scenario, name)
    most = max(range(len(groups)), key=lambda number: groups[number].count)
    next(cloud for cloud in clouds if cloud["name"] == name)["workers"][most]["count"] = groups[most].count + 1
    labels = {"system": "baseline"} if winner.labels["system"] == ALONE else {}
    return _with(winner, f"one.more-{name}", {"cluster.clouds": clouds}, groups[most].price or 0.0, **labels)


def _groups(scenario: Scenario, name: str) -> Any:
    return next(cloud.workers for cloud in scenario.cluster.clouds if cloud.name == name)


def _workers(scenario: Scenario, clouds: set[str]) -> int:
    return sum(group.count for name in clouds for group in _groups(scenario, name))


def _wan(scenario: Scenario, clouds: set[str], wider: str | None = None) -> dict[str, Any] | None:
    """The paths between some clouds, those of one with twice the bandwidth; None if that has no limited path."""
    paths, changes = [], wider is None
    names = [cloud.name for cloud in scenario.cluster.clouds if cloud.name in clouds]
    for a, b in permutations(names, 2):
        bandwidth, rtt = scenario.cluster.wan_path(a, b)
        limit: _Bandwidth = "unlimited" if bandwidth is None else bandwidth
        if bandwidth is not None and wider in (a, b):
            limit, changes = _doubled(bandwidth), True
        path = {"from": a, "to": b, "bandwidth": limit, "rtt": DURATION.format(rtt)}
        paths.append({**path, "loss": loss} if (loss := scenario.cluster.wan_loss(a, b)) else path)
    if not changes:
        return None
    return Wan.model_validate({"paths": paths}).model_dump(mode="json", by_alias=True, exclude_none=True)
