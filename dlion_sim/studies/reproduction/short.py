"""An experiment in little time: one seed, a part of each run's duration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dlion_sim.studies.reproduction.claims import Experiment
from dlion_sim.sweep import Point

PART = 10
"""A short run lasts this part of the whole one."""
_EVALUATIONS = 6
"""It is evaluated at least so often."""
MARK = "short"
"""What verdicts of short runs are marked by."""
_SEED, _DURATION, _EVERY = "seed", "duration", "workload.evaluate_every"


def shortened(points: Sequence[Point]) -> list[Point]:
    """The points of the first seed, each a tenth as long. Raises InputError for a scenario that cannot be."""
    first = points[0].labels[_SEED]
    return [_shortened(point) for point in points if point.labels[_SEED] == first]


def _shortened(point: Point) -> Point:
    scenario = point.scenario()
    if scenario.duration is None:
        return point
    duration = scenario.duration / PART
    every = min(scenario.workload.evaluate_every, duration / _EVALUATIONS)
    values = {_DURATION: f"{duration:g} s", _EVERY: f"{every:g} s"}
    labels = {axis: values.get(axis, label) for axis, label in point.labels.items()}
    return replace(point, labels=labels, values={**point.values, **values})


def short_name(name: str) -> str:
    """What the short form of an experiment is called, and its folders."""
    return f"{name}-short"


def in_short(experiment: Experiment) -> Experiment:
    """The experiment as its short form is told: without the target and the findings of the whole one."""
    note = f"Short: one seed, and 1/{PART} of each run's duration. Its verdicts are not about the paper's claims"
    return experiment.model_copy(
        update={
            "title": f"{experiment.title} (short)",
            "differs": ". ".join(filter(None, [note, experiment.differs])),
            "target": None,
            "found": "",
        }
    )
