"""Reading and writing scenarios as YAML. All faults are `InputError`s that name the file and the path."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import ValidationError

from dlion_sim.errors import InputError
from dlion_sim.files import MANIFEST, SCENARIO
from dlion_sim.scenario.faults import as_input_error
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.overrides import Override, copied, located, overridden, read_all
from dlion_sim.scenario.scenario import Scenario
from dlion_sim.scenario.unread import check_read, unread
from dlion_sim.yaml_text import MOST_BYTES, read_file, write_yaml


def load(
    path: str | Path, overrides: Sequence[str | Override] = (), *, warn: Callable[[str], None] | None = None
) -> Scenario:
    """Read and check a scenario; its traces are read from its folder. One in a run folder keeps the meaning of the
    version that wrote it.

    Args:
        path: A YAML file.
        overrides: Values to set before checking, each "dotted.path=value".
        warn: Called with a line for each setting of the file without effect; not for a run folder's.

    Raises:
        InputError: The file cannot be read or is not a valid scenario, or an override is malformed.
    """
    path = Path(path)
    data = read_data(path)
    of_run = path.name == SCENARIO and (path.parent / MANIFEST).exists()
    scenario = from_data(data, overrides, folder=path.parent, file=path, of_run=of_run)
    if warn and not of_run and isinstance(data, dict):
        for keys, fault in unread(scenario, overridden(data, overrides)):
            warn(f"{path}: {'.'.join(map(str, keys))}: {fault.problem}; read instead: {fault.allowed}")
    return scenario


def read_data(path: Path) -> object:
    """The plain data of a YAML file, unchecked. Raises InputError if it cannot be read or is not YAML."""
    try:
        path.stat()
    except FileNotFoundError:
        near = difflib.get_close_matches(path.name, [other.name for other in path.parent.glob("*.y*ml")])
        raise InputError("no such file", file=path, allowed=", ".join(near) or None) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from None
    if path.is_dir():
        raise InputError("is a folder, not a scenario", file=path, allowed=f"a YAML file; of a run {path / SCENARIO}")
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
        overrides: Values to set before checking, each "dotted.path=value". Files in them are relative to the
            current folder.
        folder: Where traces and the user's own modules are searched; by default the current folder.
        file: Where the data comes from, for messages.
        of_run: Whether a run wrote it; it keeps the meaning of the version of that run.

    Raises:
        InputError: It is not a valid scenario, or an override is malformed or has no effect.
    """
    if not isinstance(data, dict):
        problem = "is empty" if data is None else f"holds a {type(data).__name__}"
        raise InputError(f"{problem}, not a scenario's keys", file=file, allowed=", ".join(Scenario.model_fields))
    if "base" in data and "workload" not in data:
        raise InputError("is a sweep, not a scenario", file=file, allowed="a scenario; sweeps are for `sweep`")
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
    """The resolved scenario as self-contained YAML; loading it gives an equal scenario.

    Raises InputError if it is too large to be loaded.
    """
    text = write_yaml(to_data(scenario))
    if len(text.encode()) > MOST_BYTES:
        raise InputError(
            f"takes {len(text.encode()) / 1e6:.1f} MB once its traces are read", allowed=f"{MOST_BYTES / 1e6:g} MB"
        )
    return text


_OTHER_WORDS = {"delay": "rtt", "epochs": "iterations", "latency": "rtt", "lr": "learning_rate"}
_MOST = 3


def elsewhere(key: str, where: str) -> str:
    """ "; there is workload.optimizer.learning_rate", or nothing if no other part of a scenario has such a key.

    `where` is the path of the part that has the key.
    """
    here = re.sub(r"\.\d+(?=\.)", ".*", f"{where}.{key}")
    sought = _OTHER_WORDS.get(key, key)
    paths = [path for path in paths_of(sought) if path != here]
    return f"; there is {', '.join(paths[:_MOST])}" if paths else ""


def paths_of(key: str) -> list[str]:
    """The paths in a scenario that end with a key, shallow ones first, with * for the entries of lists."""
    found = (path for path in dict.fromkeys(_paths(Scenario, "", ())) if path == key or path.endswith(f".{key}"))
    return sorted(found, key=lambda path: path.count("."))


def _paths(model: type[Model], above: str, within: tuple[type[Model], ...]) -> Iterator[str]:
    """The paths of all keys below a part."""
    for name, field in model.model_fields.items():
        key = field.alias or name
        yield f"{above}{key}"
        for inner, entry in _parts(field.annotation, ""):
            if inner not in within:
                yield from _paths(inner, f"{above}{key}{entry}.", (*within, inner))


def _parts(annotation: Any, entry: str) -> Iterator[tuple[type[Model], str]]:
    """The models in an annotation, each with the path element of a list's entries where it is one."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation, entry
    for inner in () if get_origin(annotation) is dict else get_args(annotation):
        yield from _parts(inner, ".*" if get_origin(annotation) is list else entry)
