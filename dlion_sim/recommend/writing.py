"""Writes a recommendation into its folder: document, winner's scenario, figures."""

from __future__ import annotations

from typing import Any

from dlion_sim.figures import plot_pareto
from dlion_sim.figures.pareto import Point
from dlion_sim.recommend.document import document
from dlion_sim.recommend.options import front, options
from dlion_sim.recommend.study import Study
from dlion_sim.results.atomic import json_bytes, write
from dlion_sim.results.numbers import of_metric
from dlion_sim.scenario import dump

DOCUMENT, WINNER, FIGURES = "recommendation.json", "winner.yaml", ("pareto.png", "pareto.svg")

_MB = 1e6


def write_recommendation(study: Study) -> dict[str, Any]:
    """Write the results of a study into its folder; returns the content of recommendation.json.

    Raises InputError if a run cannot be read, and OSError if the folder cannot be written.
    """
    content = document(study)
    known = options(study.race)
    best = content["winner"] and content["winner"]["candidate"]
    on_front = {each.candidate.name for each in front(known)}
    points = [
        Point(
            system=each.candidate.labels["system"],
            machine=each.candidate.labels.get("instance") or f"learning rate {each.candidate.labels['learning_rate']}",
            seconds=each.seconds.value,
            spent=each.money.value if each.is_priced else each.wan_bytes.value / _MB,
            is_measured=bool(each.seeds),
            is_on_front=each.candidate.name in on_front,
            is_best=each.candidate.name == best,
        )
        for each in known
    ]
    goal = study.goal
    spent = "Cost" if all(each.is_priced for each in known) else "WAN bytes (MB)"
    target = [of_metric(study.target, study.race.observed[known[0].candidate.name].run.metric)] if known else []
    title = ", ".join([study.scenario.name, *target, goal.bound])
    for name in FIGURES:
        plot_pareto(points, title, study.output / name, deadline=goal.deadline, budget=goal.budget, spent=spent)
    winner = study.output / WINNER
    if best:
        write(winner, _winner(study, content["summary"]).encode())
    else:
        winner.unlink(missing_ok=True)
    write(study.output / DOCUMENT, json_bytes(content))
    return content


def _winner(study: Study, description: str) -> str:
    """The winner's scenario as self-contained YAML, with the validation share of the given scenario."""
    winner = study.race.winners[0]
    scenario = winner.point(study.base, study.scenario.seed).scenario()
    held_out = {"validation": study.scenario.workload.validation}
    update = {
        "description": description,
        "duration": study.goal.max_seconds(winner.per_hour),
        "workload": scenario.workload.model_copy(update=held_out),
    }
    return dump(scenario.model_copy(update=update))
