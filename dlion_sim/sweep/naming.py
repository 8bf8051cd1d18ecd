"""Names of a sweep's runs, made from a template."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dlion_sim.errors import InputError

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
