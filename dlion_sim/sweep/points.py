"""The points of a sweep: a scenario each, with a name, the values that define it, and a digest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from dlion_sim.errors import InputError
from dlion_sim.scenario import Scenario, from_data
from dlion_sim.scenario.overrides import Override, located, overridden


@dataclass(frozen=True)
class Base:
    """A scenario that points differ from."""

    file: Path
    data: dict[str, Any]
    """As it stands in the file."""

    @property
    def label(self) -> str:
        """What it is called where points are told apart."""
        return self.file.stem

    @cached_property
    def digests(self) -> dict[str, str]:
        """Of trace files, by the path that scenarios name them by, as far as they were asked for."""
        return {}


@dataclass(frozen=True)
class Point:
    """One scenario of a sweep."""

    name: str
    """Of its run folder."""
    base: Base
    labels: Mapping[str, str]
    """What its values are called, by the axes that tell points apart."""
    values: Mapping[str, Any]
    """What it sets in the base, by dotted path."""
    sweep: Path
    """The file that says so."""
    searched: frozenset[str] = frozenset()
    """Which of the values a search chose; all others are of axes."""

    def chosen(self, name: str, labels: Mapping[str, str], values: Mapping[str, Any]) -> Point:
        """This point with values that a search chose, under another name."""
        return replace(
            self,
            name=name,
            labels={**labels, **self.labels},
            values={**self.values, **values},
            searched=frozenset(values),
        )

    def scenario(self) -> Scenario:
        """The checked scenario. Raises InputError that names the axis, or else the place in the base, at fault."""
        return from_data(self.base.data, self._overrides, folder=self.base.file.parent, file=self.base.file)

    def located(self, error: InputError) -> InputError:
        """The same fault of this point's scenario, said to lie in the axis that set what is at fault, if one did."""
        return located(error, self._overrides).within(self.base.file)

    @cached_property
    def digest(self) -> str:
        """Differs for any two scenarios that may differ in anything that a run depends on."""
        data = overridden(self.base.data, self._overrides)
        data.pop("description", None)
        traces = sorted(f"{trace} {self._trace_digest(trace)}" for trace in _traces(data))
        return hashlib.sha256(msgspec.json.encode([data, traces], order="sorted")).hexdigest()[:32]

    @cached_property
    def _overrides(self) -> list[Override]:
        return [Override(path, value, self.sweep, self._place(path)) for path, value in self.values.items()]

    def _place(self, path: str) -> str:
        """Where in the sweep's file the value of a path stands."""
        return f"search.over.{path}" if path in self.searched else f"axes.{path}"

    def _trace_digest(self, trace: str) -> str:
        known = self.base.digests
        if trace not in known:
            file = self.base.file.parent / trace
            known[trace] = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
        return known[trace]


def _traces(data: object) -> Iterator[str]:
    """The files of measured capacities, and of parameters, that a scenario names."""
    if isinstance(data, dict):
        yield from (data[key] for key in ("trace", "base") if isinstance(data.get(key), str))
        for value in data.values():
            yield from _traces(value)
    elif isinstance(data, list):
        for value in data:
            yield from _traces(value)


_FIELD = re.compile(r"\{([^{}]*)\}")


def default_template(paths: Sequence[str]) -> str:
    """A template in which every axis stands."""
    return "-".join(f"{{{path}}}" for path in paths)


def name_of(template: str, labels: Mapping[str, str], *, bare: bool) -> str:
    """The name of a run with these values, by axis; fit for a folder's.

    A field of the template is an axis' path or the end of one. Unless `bare`, a value that begins with no letter has
    the last part of its path before it, as in "seed1". Raises InputError for a field that is no axis, or several.
    """

    def written(field: re.Match[str]) -> str:
        path = _axis(field[1], labels)
        label = labels[path]
        return label if bare or label[:1].isalpha() else path.rsplit(".", 1)[-1] + label

    name = _FIELD.sub(written, template)
    name = re.sub(r"[^A-Za-z0-9._-]", ".", re.sub(r"\s+", "", name)).lstrip(".-")
    if not name:
        raise InputError(f"'{template}' gives a run no name", path="names", allowed="text with {axis} in it")
    return name


def _axis(field: str, labels: Mapping[str, str]) -> str:
    if field in labels:
        return field
    ending = [path for path in labels if path.endswith(f".{field}")]
    if len(ending) != 1:
        problem = "fits several axes" if ending else "is no axis"
        raise InputError(f"{{{field}}} {problem}", path="names", allowed=", ".join(f"{{{path}}}" for path in labels))
    return ending[0]
