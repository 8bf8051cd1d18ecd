"""From the YAML of a sweep to its points. All faults are `InputError`s that name the file and the place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dlion_sim.errors import InputError
from dlion_sim.scenario import Scenario, find
from dlion_sim.scenario.complaints import as_input_error
from dlion_sim.scenario.loading import read_data
from dlion_sim.sweep.axes import Value, values_of
from dlion_sim.sweep.model import BASE, SearchSpec, Sweep, as_labels
from dlion_sim.sweep.naming import default_template, name_of
from dlion_sim.sweep.points import Base, Point


def load_sweep(file: Path) -> list[Point]:
    """Read a sweep; its points in the order of its axes, of which the last goes fastest.

    The points' scenarios are not checked yet. Raises InputError where the file or a base cannot be read or is no sweep,
    or names don't tell the points apart.
    """
    sweep = _read(file)
    try:
        points = list(_points(sweep, file))
    except InputError as error:
        raise error.within(file) from None
    if not points:
        raise InputError("leaves no run", file=file, path="exclude")
    name, count = Counter(point.name for point in points).most_common(1)[0]
    if count > 1:
        raise InputError(
            f"{count} runs have the name '{name}'",
            file=file,
            path="names",
            allowed="a template that tells all apart, by " + ", ".join(f"{{{path}}}" for path in points[0].labels),
        )
    return points


def load_search(file: Path) -> SearchSpec | None:
    """The search of a sweep that has one. Raises InputError where the file cannot be read or is no sweep."""
    return _read(file).search


def _read(file: Path) -> Sweep:
    data = read_data(file)
    if not isinstance(data, dict):
        problem = "is empty" if data is None else f"holds a {type(data).__name__}"
        raise InputError(f"{problem}, not a sweep's keys", file=file, allowed=", ".join(Sweep.model_fields))
    if "workload" in data and "base" not in data:
        raise InputError("is a scenario, no sweep", file=file, allowed="a sweep; scenarios are for `run`")
    try:
        return Sweep.model_validate(data)
    except ValidationError as error:
        raise as_input_error(error, data, file) from None


def _points(sweep: Sweep, file: Path) -> Iterator[Point]:
    bases = [_base(name, file) for name in sweep.base]
    named = [path for path in sweep.named_axes if len(sweep.named_axes[path]) > 1]
    template = sweep.names or default_template([BASE] * (len(bases) > 1 or not named) + named)
    excluded = [{path: as_labels(values) for path, values in one.items()} for one in sweep.exclude]
    for base in bases:
        for steps in product(*_dimensions(sweep)):
            labels = {BASE: base.label, **{step[0][0]: step[0][1][0] for step in steps}}
            if any(all(labels[path] in values for path, values in one.items()) for one in excluded):
                continue
            yield Point(
                name=name_of(template, labels, bare=sweep.names is not None),
                base=base,
                labels=labels,
                values={path: value for step in steps for path, (_, value) in step},
                sweep=file,
            )


def _dimensions(sweep: Sweep) -> list[list[list[tuple[str, Value]]]]:
    """What is crossed: by dimension its steps, each the values of the axes that go together."""
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
        raise InputError("is no scenario", file=found, allowed=", ".join(Scenario.model_fields))
    return Base(found, data)
