"""The YAML of a sweep: its keys, and its points. Faults are `InputError`s that name the file and the path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from dlion_sim.errors import InputError, did_you_mean
from dlion_sim.scenario import Scenario, find
from dlion_sim.scenario.faults import RuleError, as_input_error
from dlion_sim.scenario.loading import read_data
from dlion_sim.scenario.model import Model
from dlion_sim.sweep.axes import MOST, Axis, Value, label_of, values_of
from dlion_sim.sweep.metric import Metric
from dlion_sim.sweep.points import Base, Point, default_template, name_of
from dlion_sim.sweep.space import Dimension

BASE = "base"
"""Name of the axis of base scenarios."""


class SearchSpec(Model):
    """Values found by trials, each run for all combinations of the axes; a trial's result is their mean."""

    trials: Annotated[int, Field(ge=1)]
    """Number of trials. It can be raised later."""
    metric: Metric
    """The metric to optimize."""
    sampler: Literal["tpe", "random"] = "tpe"
    """Optuna's sampler: by results of earlier trials (TPE), or random."""
    seed: int = 0
    """Seed of the sampler; runs have the scenario's seed."""
    over: Annotated[dict[str, Dimension], Field(min_length=1)]
    """Search space, by dotted path in the base."""


class Sweep(Model):
    """Scenarios that differ from a base, or from several, along axes."""

    description: str = ""
    """Description of the sweep."""
    base: Annotated[
        list[str], BeforeValidator(lambda given: [given] if isinstance(given, str) else given), Field(min_length=1)
    ]
    """A scenario: a file, relative to the sweep's, or the name of a shipped one. Several are combined with the axes."""
    axes: dict[str, Axis] = Field(default_factory=dict)
    """Values by dotted path in the base. All combinations are run."""
    zipped: list[Annotated[dict[str, Axis], Field(min_length=1)]] = Field(default_factory=list)
    """Groups of axes that change together, first value with first value; each group is combined with the others."""
    exclude: list[Annotated[dict[str, Any], Field(min_length=1)]] = Field(default_factory=list)
    """Combinations to leave out: a value, or a list of values, of some axes."""
    search: SearchSpec | None = None
    """Search for values."""
    names: str | None = None
    """Template of the runs' folder names, e.g. "{system}-{bandwidth}-s{seed}": axes by their paths, or suffixes of
    these."""

    @property
    def named_axes(self) -> dict[str, list[Value]]:
        """The axes that distinguish runs: the first one of each zipped group."""
        firsts = (next(iter(group.items())) for group in self.zipped)
        return {path: values_of(axis) for path, axis in chain(self.axes.items(), firsts)}

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        seen: set[str] = set()
        for path, at in self.paths():
            if not all(path.split(".")):
                raise RuleError(f"'{path}' is not a dotted path such as workload.batch_size", at=at)
            if path in seen:
                raise RuleError(f"'{path}' is already an axis", at=at)
            seen.add(path)
        for number, group in enumerate(self.zipped):
            lengths = {path: len(values_of(axis)) for path, axis in group.items()}
            if len(set(lengths.values())) > 1:
                listed = ", ".join(f"{path} has {length}" for path, length in lengths.items())
                raise RuleError(f"zipped axes must be equally long, but {listed}", at=("zipped", number))
        known = {BASE: None, **{path: [label for label, _ in values] for path, values in self.named_axes.items()}}
        for number, combination in enumerate(self.exclude):
            for path, values in combination.items():
                _check_excluded(path, values, known, at=("exclude", number, path))
        return self

    def paths(self) -> Iterator[tuple[str, tuple[str | int, ...]]]:
        """Every axis with its place."""
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
        raise RuleError(f"'{path}' is not an axis{did_you_mean(path, known)}", allowed=", ".join(known), at=at[:-1])
    labels = known[path]
    for value in as_labels(values):
        if labels is not None and value not in labels:
            raise RuleError(f"'{value}' is not a value of that axis", allowed=", ".join(labels), at=at)


def load_sweep(file: Path) -> list[Point]:
    """Read a sweep; returns its points in the order of its axes, the last one varying fastest.

    The points' scenarios are not checked yet. Raises InputError if the file or a base cannot be read or is not a sweep,
    or if names of points are not unique.
    """
    sweep = _read(file)
    try:
        points = list(_points(sweep, file))
    except InputError as error:
        raise error.within(file) from None
    if not points:
        raise InputError("leaves out all runs", file=file, path="exclude")
    name, count = Counter(point.name for point in points).most_common(1)[0]
    if count > 1:
        raise InputError(
            f"{count} runs have the name '{name}'",
            file=file,
            path="names",
            allowed="a template with unique names, from " + ", ".join(f"{{{path}}}" for path in points[0].labels),
        )
    return points


def load_search(file: Path) -> SearchSpec | None:
    """The search of a sweep, if it has one. Raises InputError if the file cannot be read or is not a sweep."""
    return _read(file).search


def _read(file: Path) -> Sweep:
    data = read_data(file)
    if not isinstance(data, dict):
        problem = "is empty" if data is None else f"holds a {type(data).__name__}"
        raise InputError(f"{problem}, not a sweep's keys", file=file, allowed=", ".join(Sweep.model_fields))
    if "workload" in data and "base" not in data:
        raise InputError("is a scenario, not a sweep", file=file, allowed="a sweep; scenarios are for `run`")
    try:
        return Sweep.model_validate(data)
    except ValidationError as error:
        raise as_input_error(error, data, file) from None


def _check_bases(sweep: Sweep, labels: Sequence[str]) -> None:
    """Raise InputError for bases of the same label, and where `exclude` names none."""
    for number, label in enumerate(labels):
        if label in labels[:number]:
            problem = f"{sweep.base[labels.index(label)]} and {sweep.base[number]} are both named '{label}'"
            raise InputError(problem, path=f"{BASE}.{number}", allowed="files of different names")
    for number, combination in enumerate(sweep.exclude):
        for label in as_labels(combination.get(BASE, [])):
            if label not in labels:
                problem = f"'{label}' is not a base{did_you_mean(label, labels)}"
                raise InputError(problem, path=f"exclude.{number}.{BASE}", allowed=", ".join(labels))


def _points(sweep: Sweep, file: Path) -> Iterator[Point]:
    bases = [_base(name, file) for name in sweep.base]
    _check_bases(sweep, [base.label for base in bases])
    named = [path for path in sweep.named_axes if len(sweep.named_axes[path]) > 1]
    template = sweep.names or default_template([BASE] * (len(bases) > 1 or not named) + named)
    places = {path: ".".join(map(str, at)) for path, at in sweep.paths()}
    excluded = [{path: as_labels(values) for path, values in one.items()} for one in sweep.exclude]
    dimensions = _dimensions(sweep)
    if (count := len(bases) * prod(map(len, dimensions))) > MOST:
        raise InputError(f"its axes have {count} combinations", path="axes", allowed=f"up to {MOST}")
    for base in bases:
        for steps in product(*dimensions):
            labels = {BASE: base.label, **{step[0][0]: step[0][1][0] for step in steps}}
            if any(all(labels[path] in values for path, values in one.items()) for one in excluded):
                continue
            yield Point(
                name=name_of(template, labels, bare=sweep.names is not None),
                base=base,
                labels=labels,
                values={path: value for step in steps for path, (_, value) in step},
                sweep=file,
                places=places,
            )


def _dimensions(sweep: Sweep) -> list[list[list[tuple[str, Value]]]]:
    """The dimensions to combine: each has steps with the values of the axes that change together."""
    groups = [*({path: axis} for path, axis in sweep.axes.items()), *sweep.zipped]
    return [
        [list(zip(group, values, strict=True)) for values in zip(*map(values_of, group.values()), strict=True)]
        for group in groups
    ]


def _base(name: str, file: Path) -> Base:
    """The base scenario of a sweep's file."""
    beside = file.parent / name
    try:
        found = beside if beside.is_file() else find(name)
    except InputError as error:
        raise InputError(f"{name}: {error.problem}", file=file, path=BASE, allowed=error.allowed) from None
    data: Any = read_data(found)
    if not isinstance(data, dict):
        raise InputError("is not a scenario", file=found, allowed=", ".join(Scenario.model_fields))
    return Base(found, data)
