"""From a YAML file to a checked scenario, and back. All faults are `InputError`s that name the file and the place."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dlion_sim.errors import InputError
from dlion_sim.scenario.complaints import as_input_error
from dlion_sim.scenario.elsewhere import elsewhere
from dlion_sim.scenario.overrides import Override, copied, located, overridden, read_all
from dlion_sim.scenario.scenario import Scenario
from dlion_sim.scenario.unread import check_read, unread
from dlion_sim.yaml_text import MOST_BYTES, read_file, write_yaml


def load(path: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """Read a scenario and check it; traces that it names are read from its folder. A run folder's means what it meant
    when it was written.

    Args:
        path: A YAML file.
        overrides: Values to set before checking, each "dotted.path=value".

    Raises:
        InputError: The file cannot be read or is no valid scenario, or an override is malformed.
    """
    path = Path(path)
    return from_data(read_data(path), overrides, folder=path.parent, file=path, of_run=_is_of_run(path))


def warnings(path: str | Path, overrides: Sequence[str], scenario: Scenario) -> list[str]:
    """What the file of a scenario states and nothing reads, a line each; none of a run folder's."""
    path = Path(path)
    data = read_data(path)
    if _is_of_run(path) or not isinstance(data, dict):
        return []
    return [
        f"{path}: {'.'.join(map(str, keys))}: {fault.problem}; read instead: {fault.allowed}"
        for keys, fault in unread(scenario, overridden(data, overrides))
    ]


def _is_of_run(path: Path) -> bool:
    return path.name == "scenario.yaml" and (path.parent / "manifest.json").exists()


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
    data: object,
    overrides: Sequence[str | Override] = (),
    *,
    folder: str | Path = "",
    file: str | Path | None = None,
    of_run: bool = False,
) -> Scenario:
    """Check a scenario given as the plain data of its YAML.

    Args:
        data: Mapping with the scenario's keys, values as they would be written in YAML.
        overrides: Values to set before checking, each "dotted.path=value". Files that they name are relative to the
            current folder.
        folder: What the paths of traces are relative to, and modules of the user's own are looked for in; the current
            folder unless given.
        file: Where the data comes from, for messages.
        of_run: Whether a run has written it, perhaps one of a former version; it means what it meant then.

    Raises:
        InputError: It is no valid scenario, or an override is malformed or sets what nothing reads.
    """
    if not isinstance(data, dict):
        problem = "is empty" if data is None else f"holds a {type(data).__name__}"
        raise InputError(f"{problem}, not a scenario's keys", file=file, allowed=", ".join(Scenario.model_fields))
    if "base" in data and "workload" not in data:
        raise InputError("is a sweep, no scenario", file=file, allowed="a scenario; sweeps are for `sweep`")
    settings = read_all(overrides)
    changed = copied(data)
    places = [setting.apply(changed) for setting in settings]
    context = {"folder": Path(folder), "of_run": of_run}
    try:
        scenario = _checked(changed, context)
    except InputError as error:
        given = data
        fault = located(error, settings, lambda some: _checked(overridden(given, some), context))
        raise fault.within(file) from None
    for setting, set_there in zip(settings, places, strict=True):
        if setting.value is not None:
            check_read(scenario, setting, set_there)
    if scenario.references and scenario.modules is None:
        return scenario.model_copy(update={"modules": str(Path(folder).absolute())})
    return scenario


def _checked(data: dict[str, Any], context: dict[str, Any]) -> Scenario:
    try:
        return Scenario.model_validate(data, context=context)
    except ValidationError as error:
        raise as_input_error(error, data, None, elsewhere) from None


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
