"""The experiments that are repeated, and what their papers claim of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from dlion_sim.errors import InputError
from dlion_sim.scenario.faults import as_input_error
from dlion_sim.scenario.loading import read_data
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.shipped import CLAIMS, REPRODUCTION
from dlion_sim.sweep import Point

PART = 10
"""A short run's duration is 1/PART of the full one."""
_MIN_EVALUATIONS = 6
"""Of a short run."""
MARK = "short"
"""The mark of verdicts on short runs."""

Quantity = Literal["accuracy", "time", "deviation", "bytes", "iterations"]
"""What a claim is about: the metric at the end; the time to the target; how far apart the workers are, on
average over evaluations; what all of them sent; how many iterations they did."""
Labels = Annotated[dict[str, str], Field(min_length=1)]


class Claim(Model):
    """That some runs do better than others, all else being equal."""

    says: str
    """The claim, in words."""
    of: Labels
    """Whose runs: values of the sweep's axes, by the axes or the ends of their paths."""
    than: Labels
    """Than whose; axes that neither names are the same on both sides."""
    by: Quantity = "accuracy"
    """In what. More accuracy is better, and less of everything else but iterations."""
    paper: str = ""
    """The number that the paper has, if it is known."""


class Comparison(Model):
    """That each of some systems does better than each of others: a claim for every two."""

    of: Annotated[list[str], Field(min_length=1)]
    """Values of the sweep's axis `system`."""
    than: Annotated[list[str], Field(min_length=1)]
    """Those that they are compared with."""
    by: Quantity = "accuracy"
    """In what."""
    paper: str = ""
    """The number that the paper has, if it is known."""

    @property
    def claims(self) -> list[Claim]:
        """What it comes to."""
        return [
            Claim(
                says=f"{one} {_BETTER[self.by]} {other}",
                of={"system": one},
                than={"system": other},
                by=self.by,
                paper=self.paper,
            )
            for one in self.of
            for other in self.than
        ]


_BETTER: Mapping[Quantity, str] = {
    "accuracy": "is more accurate than",
    "time": "is sooner than",
    "deviation": "is closer together than",
    "bytes": "sends less than",
    "iterations": "does more iterations than",
}


class Rates(Model):
    """Learning rates by which systems are compared, all found on validation samples in Homo A."""

    one: float | None = None
    """Baseline's best, which all have, if they are compared so too."""
    own: dict[str, float]
    """Each system's best, by the label that it has in the sweep."""


class Closer(Model):
    """A look at one run of an experiment."""

    run: str
    """Its name."""
    figures: list[Literal["batch_sizes", "links"]]
    """What is drawn of it."""


class Experiment(Model):
    """One experiment of a paper."""

    title: str
    """What it is about."""
    repeats: str
    """Which figure or table of which paper it repeats, as far as that is known."""
    paper: str
    """What the paper reports."""
    sure: str
    """How sure it is that its settings and numbers are the paper's."""
    differs: str = ""
    """What of it is otherwise here, and why."""
    target: Annotated[float, Field(gt=0, le=1)] | None = None
    """The accuracy whose time is told. By default the best that half of the runs reached."""
    figure: Literal["accuracy", "accuracy_at", "deviation", "time_to_accuracy", "trade_off"] = "accuracy"
    """What is drawn of all runs."""
    closer: Closer | None = None
    """What is drawn of one run, if the mean over seeds hides what the paper claims."""
    rates: Rates | None = None
    """If comparisons are made with each system's own learning rate; and maybe with one for all, too."""
    compared: list[Comparison] = Field(default_factory=list)
    """Systems that are judged by each other."""
    claims: list[Claim] = Field(default_factory=list)
    """What else is judged."""
    found: str = ""
    """What was found, and why it is so, once it has been looked at."""

    @property
    def judged(self) -> list[Claim]:
        """All that is judged."""
        return [*(claim for comparison in self.compared for claim in comparison.claims), *self.claims]


def experiments() -> Mapping[str, Experiment]:
    """All of them, by name, in the order of the file. Raises InputError where that cannot be read."""
    data = read_data(CLAIMS)
    try:
        return TypeAdapter(dict[str, Experiment]).validate_python(data)
    except ValidationError as error:
        raise as_input_error(error, data, CLAIMS) from None


def sweep_of(name: str) -> Path:
    """The sweep of an experiment. Raises InputError where there is none."""
    file = REPRODUCTION / f"{name}.yaml"
    if not file.is_file():
        raise InputError("no such sweep", file=file)
    return file


def shortened(points: Sequence[Point]) -> list[Point]:
    """The points of the first seed, each a tenth as long. Raises InputError for an invalid scenario."""
    first = points[0].labels["seed"]
    return [_shortened(point) for point in points if point.labels["seed"] == first]


def _shortened(point: Point) -> Point:
    scenario = point.scenario()
    if scenario.duration is None:
        return point
    duration = scenario.duration / PART
    every = min(scenario.workload.evaluate_every, duration / _MIN_EVALUATIONS)
    values = {"duration": f"{duration:g} s", "workload.evaluate_every": f"{every:g} s"}
    labels = {axis: values.get(axis, label) for axis, label in point.labels.items()}
    return replace(point, labels=labels, values={**point.values, **values})


def short_name(name: str) -> str:
    """The name of an experiment's short form and of its folders."""
    return f"{name}-short"


def in_short(experiment: Experiment) -> Experiment:
    """The short form's description: without the target and the findings of the full experiment."""
    note = f"Short: one seed, and 1/{PART} of each run's duration. Its verdicts are not about the paper's claims"
    return experiment.model_copy(
        update={
            "title": f"{experiment.title} (short)",
            "differs": ". ".join(filter(None, [note, experiment.differs])),
            "target": None,
            "found": "",
        }
    )
