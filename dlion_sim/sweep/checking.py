"""Checks of points before any run starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from dlion_sim.errors import InputError
from dlion_sim.scenario import SystemSpec, named
from dlion_sim.sweep.points import Point


def check(points: Sequence[Point]) -> None:
    """Raise InputError for invalid scenarios or systems of points, with a fault for each invalid place."""
    systems: dict[tuple[str, str | None], tuple[Point, SystemSpec]] = {}
    with _Faults() as faults:
        for point in points:
            with faults.of(point):
                scenario = point.scenario()
                key = scenario.system.model_dump_json(), scenario.modules
                systems.setdefault(key, (point, scenario.system))
    if not systems:
        return  # without importing PyTorch
    from dlion_sim.protocol.compose import compose

    with _Faults() as faults:
        for (_, modules), (point, system) in systems.items():
            with faults.of(point):
                compose(system, modules)


def check_system(name: str, modules: str) -> None:
    """Raise InputError for the name of a system that does not exist; one of the user's own is found in `modules`."""
    from dlion_sim.protocol.compose import compose

    compose(SystemSpec(name=name), modules)


def check_data(points: Sequence[Point]) -> None:
    """Fetch the files of all published data sets of the points, or raise InputError."""
    firsts: dict[str, Point] = {}
    for point in points:
        firsts.setdefault(named(point.scenario().workload.dataset)[0], point)
    if not firsts:
        return  # without importing PyTorch
    from dlion_sim.learning.datasets import fetch

    for name, point in firsts.items():
        try:
            fetch(name)
        except InputError as error:
            raise (error if error.file else point.located(error.below("workload"))) from None


def equal_points(points: Sequence[Point]) -> list[list[str]]:
    """Groups of names of checked points with equal scenarios."""
    from dlion_sim.protocol.compose import compose

    systems: dict[tuple[str, str | None], SystemSpec] = {}
    names: dict[str, list[str]] = {}
    for point in points:
        scenario = point.scenario()
        key = scenario.system.model_dump_json(), scenario.modules
        if key not in systems:
            systems[key] = compose(scenario.system, scenario.modules).spec
        resolved = scenario.model_copy(update={"name": "", "description": "", "system": systems[key]})
        names.setdefault(resolved.model_dump_json(), []).append(point.name)
    return [each for each in names.values() if len(each) > 1]


class _Faults:
    """Collects distinct faults of points; raises them together when the block ends."""

    def __init__(self) -> None:
        self._faults: dict[str, InputError] = {}

    @contextmanager
    def of(self, point: Point) -> Iterator[None]:
        """Collect a fault of this point that the block raises."""
        try:
            yield
        except InputError as error:
            from dlion_sim.protocol.compose import with_choices

            fault = with_choices(point.located(error))
            self._faults.setdefault(str(fault), fault)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._faults and kind is None:
            raise InputError.joined([*self._faults.values()])
