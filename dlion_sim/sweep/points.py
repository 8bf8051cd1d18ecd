"""The points of a sweep: a scenario each, with a name, the values that define it, and a digest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dlion_sim.errors import InputError
from dlion_sim.scenario import Scenario, from_data
from dlion_sim.scenario.overrides import Override, located
from dlion_sim.sweep.identity import digest_of


@dataclass(frozen=True)
class Base:
    """The scenario that points change."""

    file: Path
    data: dict[str, Any]
    """Content of the file."""

    @property
    def label(self) -> str:
        """Its label in points."""
        return self.file.stem


@dataclass(frozen=True)
class Point:
    """One scenario of a sweep."""

    name: str
    """Name of its run folder."""
    base: Base
    labels: Mapping[str, str]
    """Labels of its values, by axis."""
    values: Mapping[str, Any]
    """Values to set in the base, by dotted path."""
    sweep: Path
    """The sweep's file."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Places of values in that file, by dotted path, where they are not the path itself."""

    def chosen(self, name: str, labels: Mapping[str, str], values: Mapping[str, Any]) -> Point:
        """This point with values chosen by a search, under another name."""
        return replace(
            self,
            name=name,
            labels={**labels, **self.labels},
            values={**self.values, **values},
        )

    def scenario(self) -> Scenario:
        """The checked scenario. Raises InputError that names the axis, or else the place in the base."""
        return from_data(self.base.data, self._overrides, folder=self.base.file.parent, file=self.base.file)

    def located(self, error: InputError) -> InputError:
        """The same fault, attributed to the axis that caused it, if one did."""
        return located(error, self._overrides).within(self.base.file)

    @cached_property
    def digest(self) -> str:
        """The digest of its scenario. Raises InputError as `scenario`."""
        return digest_of(self.scenario())

    @cached_property
    def _overrides(self) -> list[Override]:
        return [Override(path, value, self.sweep, self.places.get(path)) for path, value in self.values.items()]


_FIELD = re.compile(r"\{([^{}]*)\}")


def default_template(paths: Sequence[str]) -> str:
    """A template with all axes."""
    return "-".join(f"{{{path}}}" for path in paths)


def name_of(template: str, labels: Mapping[str, str], *, bare: bool) -> str:
    """The name of a run from its labels by axis, valid as a folder name.

    A field of the template is an axis' path or a suffix of one. Unless `bare`, a label that does not start with a
    letter is prefixed with the last part of its path, as in "seed1". Raises InputError for a field that matches no
    axis, or several.
    """

    def written(field: re.Match[str]) -> str:
        path = _axis(field[1], labels)
        label = labels[path]
        return label if bare or label[:1].isalpha() else path.rsplit(".", 1)[-1] + label

    name = _FIELD.sub(written, template)
    name = re.sub(r"[^A-Za-z0-9._-]", ".", re.sub(r"\s+", "", name)).lstrip(".-")
    if not name:
        raise InputError(f"'{template}' results in an empty name", path="names", allowed="text with {axis} in it")
    return name


def _axis(field: str, labels: Mapping[str, str]) -> str:
    if field in labels:
        return field
    ending = [path for path in labels if path.endswith(f".{field}")]
    if len(ending) != 1:
        problem = "matches several axes" if ending else "is not an axis"
        raise InputError(f"{{{field}}} {problem}", path="names", allowed=", ".join(f"{{{path}}}" for path in labels))
    return ending[0]
