"""What the YAML of a sweep may say."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dlion_sim.errors import did_you_mean
from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model
from dlion_sim.sweep.axes import Axis, Value, label_of, values_of
from dlion_sim.sweep.metric import Metric
from dlion_sim.sweep.space import Dimension

BASE = "base"
"""Stands for the base scenario where axes are named."""


class SearchSpec(Model):
    """Values that are found by trials, each run for all combinations of the axes; a trial's value is their mean."""

    trials: Annotated[int, Field(ge=1)]
    """How many in all. More may be asked for later."""
    metric: Metric
    """What to go for, and by that in which direction."""
    sampler: Literal["tpe", "random"] = "tpe"
    """How Optuna chooses: by what former trials came to, or blindly."""
    seed: int = 0
    """Of the sampler; those of the runs are the scenario's."""
    over: Annotated[dict[str, Dimension], Field(min_length=1)]
    """What may be chosen, by the dotted path of what it sets in the base."""


class Sweep(Model):
    """Scenarios that differ from a base, or from several, along axes."""

    description: str = ""
    """For the reader."""
    base: Annotated[
        list[str], BeforeValidator(lambda given: [given] if isinstance(given, str) else given), Field(min_length=1)
    ]
    """A scenario: a file, relative to the sweep's, or the name of a ready one. Several are crossed with the axes."""
    axes: dict[str, Axis] = Field(default_factory=dict)
    """Values by the dotted path of what they set in the base. All combinations are run."""
    zipped: list[Annotated[dict[str, Axis], Field(min_length=1)]] = Field(default_factory=list)
    """Groups of axes that go together, first values with first values; each group is crossed with all else."""
    exclude: list[Annotated[dict[str, Any], Field(min_length=1)]] = Field(default_factory=list)
    """Combinations that are not run: a value, or a list of values, of some axes."""
    search: SearchSpec | None = None
    """What is not given but to be found."""
    names: str | None = None
    """Of the runs' folders, e.g. "{system}-{bandwidth}-s{seed}": axes by their paths, or by the ends of these."""

    @property
    def named_axes(self) -> dict[str, list[Value]]:
        """The axes that tell runs apart: of a zipped group the first one."""
        firsts = (next(iter(group.items())) for group in self.zipped)
        return {path: values_of(axis) for path, axis in chain(self.axes.items(), firsts)}

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        seen: set[str] = set()
        for path, at in self._paths():
            if not all(path.split(".")):
                raise RuleError(f"'{path}' is no dotted path, such as workload.batch_size", at=at)
            if path in seen:
                raise RuleError(f"'{path}' is an axis already", at=at)
            seen.add(path)
        for number, group in enumerate(self.zipped):
            lengths = {path: len(values_of(axis)) for path, axis in group.items()}
            if len(set(lengths.values())) > 1:
                told = ", ".join(f"{path} has {length}" for path, length in lengths.items())
                raise RuleError(f"zipped axes must be equally long, but {told}", at=("zipped", number))
        known = {BASE: None, **{path: [label for label, _ in values] for path, values in self.named_axes.items()}}
        for number, combination in enumerate(self.exclude):
            for path, values in combination.items():
                _check_excluded(path, values, known, at=("exclude", number, path))
        return self

    def _paths(self) -> Iterator[tuple[str, tuple[str | int, ...]]]:
        """Every axis with where it stands."""
        yield from ((path, ("axes", path)) for path in self.axes)
        for number, group in enumerate(self.zipped):
            yield from ((path, ("zipped", number, path)) for path in group)
        if self.search:
            yield from ((path, ("search", "over", path)) for path in self.search.over)


def as_labels(values: object) -> list[str]:
    """A value, or a list of values, as labels."""
    return [label_of(value) for value in (values if isinstance(values, list) else [values])]


def _check_excluded(path: str, values: object, known: dict[str, list[str] | None], at: tuple[str | int, ...]) -> None:
    if path not in known:
        raise RuleError(f"'{path}' is no axis{did_you_mean(path, known)}", allowed=", ".join(known), at=at[:-1])
    labels = known[path]
    for value in as_labels(values):
        if labels is not None and value not in labels:
            raise RuleError(f"'{value}' is no value of that axis", allowed=", ".join(labels), at=at)
