"""The reproduced experiments, their papers' claims, and short forms of them."""

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
"""The quantity of a claim: the final metric; the time to the target; the mean deviation among workers; bytes sent by
all; iterations."""
Labels = Annotated[dict[str, str], Field(min_length=1)]


class Claim(Model):
    """The claim that some runs are better than others, all else being equal."""

    says: str
    """The claim as text."""
    of: Labels
    """The better runs: values of the sweep's axes, by the axes or the ends of their paths."""
    than: Labels
    """The other runs; axes that neither names are the same on both sides."""
    by: Quantity = "accuracy"
    """The quantity. More is better of accuracy and iterations, less of the others."""
    paper: str = ""
    """The paper's number, if known."""


class Comparison(Model):
    """The claims that each of some systems is better than each of others."""

    of: Annotated[list[str], Field(min_length=1)]
    """Values of the sweep's axis `system`."""
    than: Annotated[list[str], Field(min_length=1)]
    """The systems that they are compared with."""
    by: Quantity = "accuracy"
    """The quantity."""
    paper: str = ""
    """The paper's number, if known."""

    @property
    def claims(self) -> list[Claim]:
        """A claim for every pair."""
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
    """Learning rates for comparisons, all found on validation samples in Homo A."""

    one: float | None = None
    """Baseline's best rate, for comparisons with one rate for all."""
    own: dict[str, float]
    """Each system's best rate, by its label in the sweep."""


class Closer(Model):
    """Figures of one run of an experiment."""

    run: str
    """The run's name."""
    figures: list[Literal["batch_sizes", "links"]]
    """The kinds of figures."""


class Experiment(Model):
    """One experiment of a paper."""

    title: str
    """The title."""
    repeats: str
    """The paper's figure or table, if known."""
    paper: str
    """The paper's result."""
    sure: str
    """The certainty that its settings and numbers are the paper's."""
    differs: str = ""
    """Differences from the paper, and reasons."""
    target: Annotated[float, Field(gt=0, le=1)] | None = None
    """The target accuracy. By default the best that half of the runs reached."""
    figure: Literal["accuracy", "accuracy_at", "deviation", "time_to_accuracy", "trade_off"] = "accuracy"
    """The kind of figure of all runs."""
    closer: Closer | None = None
    """Figures of one run, if the mean over seeds hides the claim."""
    rates: Rates | None = None
    """Learning rates, if comparisons are made with each system's own one, and optionally with one for all."""
    compared: list[Comparison] = Field(default_factory=list)
    """Comparisons of systems."""
    claims: list[Claim] = Field(default_factory=list)
    """Further claims."""
    found: str = ""
    """The findings, as text."""

    @property
    def judged(self) -> list[Claim]:
        return [*(claim for comparison in self.compared for claim in comparison.claims), *self.claims]


def experiments() -> Mapping[str, Experiment]:
    """All experiments by name, in the order of the file. Raises InputError if it cannot be read."""
    data = read_data(CLAIMS)
    try:
        return TypeAdapter(dict[str, Experiment]).validate_python(data)
    except ValidationError as error:
        raise as_input_error(error, data, CLAIMS) from None


def sweep_of(name: str) -> Path:
    """The sweep of an experiment. Raises InputError if there is none."""
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
