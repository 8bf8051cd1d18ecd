"""The reproduced experiments and their papers' claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from dlion_sim.scenario.faults import as_input_error
from dlion_sim.scenario.loading import read_data
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.shipped import CLAIMS

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
    "time": "reaches the target before",
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

    def are_one(self, sides: Iterable[Mapping[str, str]]) -> bool:
        """Whether the one for all is the own one too for the systems of these labels."""
        return self.one is not None and all(self.own.get(side.get("system", "")) == self.one for side in sides)


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
    stand_in: str = ""
    """What is known to differ with the paper's model, if a small network has its place."""
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
