"""From a YAML file to a checked scenario, and back. All faults are `InputError`s that name the file and the place."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dlion_sim.errors import InputError
from dlion_sim.scenario.complaints import as_input_error
from dlion_sim.scenario.overrides import overridden
from dlion_sim.scenario.scenario import Scenario
from dlion_sim.yaml_text import MOST_BYTES, read_file, write_yaml


def load(path: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """Read a scenario and check it; traces that it names are read from its folder.

    Args:
        path: A YAML file.
        overrides: Values to set before checking, each "dotted.path=value".

    Raises:
        InputError: The file cannot be read or is no valid scenario, or an override is malformed.
    """
    path = Path(path)
    return from_data(read_data(path), overrides, folder=path.parent, file=path)


def read_data(path: Path) -> object:
    """The plain data of a YAML file, unchecked. Raises InputError where it cannot be read or is no YAML."""
    try:
        path.stat()
    except FileNotFoundError:
        near = difflib.get_close_matches(path.name, [other.name for other in path.parent.glob("*.y*ml")])
        raise InputError("no such file", file=path, allowed=", ".join(near) or None) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from None
    return read_file(path)


def from_data(
    data: object, overrides: Sequence[str] = (), *, folder: str | Path = "", file: str | Path | None = None
) -> Scenario:
    """Check a scenario given as the plain data of its YAML.

    Args:
        data: Mapping with the scenario's keys, values as they would be written in YAML.
        overrides: Values to set before checking, each "dotted.path=value".
        folder: What the paths of traces are relative to, and modules of the user's own are looked for in; the current
            folder unless given.
        file: Where the data comes from, for messages.

    Raises:
        InputError: It is no valid scenario, or an override is malformed.
    """
    if not isinstance(data, dict):
        problem = "is empty" if data is None else f"holds a {type(data).__name__}"
        raise InputError(f"{problem}, not a scenario's keys", file=file, allowed=", ".join(Scenario.model_fields))
    data = overridden(data, overrides)
    try:
        scenario = Scenario.model_validate(data, context={"folder": Path(folder)})
    except ValidationError as error:
        raise as_input_error(error, data, file) from None
    if scenario.references and scenario.modules is None:
        return scenario.model_copy(update={"modules": str(Path(folder).absolute())})
    return scenario


def to_data(scenario: Scenario) -> dict[str, Any]:
    """The plain data of a scenario's YAML; `from_data` makes an equal scenario of it."""
    return scenario.model_dump(mode="json", by_alias=True, exclude_none=True)


def dump(scenario: Scenario) -> str:
    """The resolved scenario as YAML, complete in itself; loading it gives an equal scenario.

    Raises InputError where it would be too large to be loaded.
    """
    text = write_yaml(to_data(scenario))
    if len(text.encode()) > MOST_BYTES:
        raise InputError(
            f"takes {len(text.encode()) / 1e6:.1f} MB once its traces are read", allowed=f"{MOST_BYTES / 1e6:g} MB"
        )
    return text
