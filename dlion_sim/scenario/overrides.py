"""Overrides of single values ("cluster.clouds.0.workers.0.nic=20 Mbps"), and attributing faults to them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlion_sim.errors import InputError
from dlion_sim.yaml_text import read_yaml

Keys = tuple[str | int, ...]
ANY = "*"
"""In a path, every entry of a list."""
_MOST_SHOWN = 200
_FILES = (
    ("lora", "base"),
    ("matrix", "file"),
    ("modules",),
    ("prices", "catalog"),
    ("rtt_matrix", "file"),
    ("trace",),
    ("wan", "matrix"),
    ("wan", "rtt_matrix"),
)
"""Ends of paths whose values are files."""


@dataclass(frozen=True)
class Override:
    """A value to set, with the place that errors name."""

    path: str
    """Dotted."""
    value: Any
    file: str | Path
    place: str | None = None
    """Inside the file."""

    @classmethod
    def read(cls, written: str) -> Override:
        """From "dotted.path=value", the value being YAML; files that it names are relative to the current folder.

        Raises:
            InputError: It is malformed.
        """
        path, equals, text = written.partition("=")
        called = f"`overrides` {written if len(written) <= _MOST_SHOWN else f'{written[:_MOST_SHOWN]}...'}"
        if not equals or not all(path.strip().split(".")):
            raise InputError("an override is written dotted.path=value, e.g. duration=60 s", file=called)
        try:
            value = read_yaml(text)
        except ValueError as error:
            raise InputError(str(error), file=called) from None
        path = path.strip()
        return cls(path, anchored(value, path.split("."), Path()), called)

    @classmethod
    def of(cls, path: str, value: object) -> Override:
        """From a value in Python, perhaps of NumPy; files that it names are relative to the current folder.

        Raises InputError for one that is no data.
        """

        def plain(other: Any) -> object:
            return other.tolist() if hasattr(other, "tolist") else os.fspath(other)

        called = f"`overrides` {path}"
        try:
            data = json.loads(json.dumps(value, default=plain))
        except (TypeError, ValueError) as error:
            raise InputError(f"is no data: {error}", file=called, allowed="what YAML has, arrays, paths") from None
        return cls(path, anchored(data, path.split("."), Path()), called)

    def fault(self, error: InputError) -> InputError:
        """The scenario's fault, as one of this override."""
        return InputError(error.problem, file=self.file, path=self.place or error.path, allowed=error.allowed)

    def apply(self, data: dict[str, Any]) -> list[Keys]:
        """Set it in the data, in place; returns the keys of all that was set.

        Raises:
            InputError: The path does not exist.
        """
        try:
            return set_value(data, self.path.split("."), self.value)
        except ValueError as error:
            raise InputError(str(error), file=self.file, path=self.place) from None


def read_all(overrides: Sequence[str | Override]) -> list[Override]:
    """All of them, text parsed; those of a whole part are before those inside it, which they would overwrite."""
    parsed = [each if isinstance(each, Override) else Override.read(each) for each in overrides]
    return sorted(parsed, key=lambda each: each.path.count("."))


def overridden(data: Mapping[str, Any], overrides: Sequence[str | Override]) -> dict[str, Any]:
    """A copy of the data with each "dotted.path=value" set, the value being YAML.

    Numbers index lists, and * means all entries of a list. Missing mappings are created, and the names of a
    system, of a part of it, of a partition and of a matrix become mappings.

    Raises:
        InputError: An override is malformed, or its path does not exist.
    """
    changed: dict[str, Any] = copied(dict(data))
    for override in read_all(overrides):
        override.apply(changed)
    return changed


def located(
    error: InputError,
    overrides: Sequence[Override],
    check: Callable[[Sequence[Override]], object] | None = None,
) -> InputError:
    """The same fault of a scenario, attributed to the override that caused it, if one did.

    That is the last override of the place or of a part around it, or else the last one without which the fault
    disappears: `check` raises the faults with a subset of the overrides. Without `check`, it is one inside the place.
    """
    further = [located(fault, overrides, check) for fault in error.further]
    if error.file is None:
        keys = error.path.split(".") if error.path else []
        guilty = [each for each in overrides if _leads_to(each.path.split("."), keys)]
        if not guilty and check is None:
            guilty = [each for each in overrides if keys and _leads_to(each.path.split(".")[: len(keys)], keys)]
        elif check and not guilty and _has(error, check, overrides):
            guilty = [
                each for each in overrides if not _has(error, check, [one for one in overrides if one is not each])
            ]
        if guilty:
            error = guilty[-1].fault(error)
    return InputError(error.problem, file=error.file, path=error.path, allowed=error.allowed, further=further)


def _has(error: InputError, check: Callable[[Sequence[Override]], object], overrides: Sequence[Override]) -> bool:
    """Whether the scenario with these overrides has that fault."""
    try:
        check(overrides)
    except InputError as found:
        return (error.path, error.problem) in [(each.path, each.problem) for each in (found, *found.further)]
    return False


def _leads_to(path: Sequence[str], place: Sequence[str]) -> bool:
    """Whether a path, with * for any entry, is a place in a scenario or above it."""
    return len(path) <= len(place) and all(key in (other, ANY) for key, other in zip(path, place, strict=False))


def set_value(data: dict[str, Any], keys: Sequence[str], value: object) -> list[Keys]:
    """Set the value at the path of `keys` below `data`, in place; the keys of all that was set.

    Raises ValueError if the path does not exist.
    """
    return list(_set(data, keys, value, ()))


def _set(place: Any, keys: Sequence[str], value: object, above: Keys) -> Iterator[Keys]:
    key, *below = keys
    here = ".".join(map(str, above))
    if not isinstance(place, list | dict):
        raise ValueError(f"'{here}' is {place!r}, which has no '{key}' to set; set '{here}' itself")
    slots: Iterable[Any] = _slots(key, place, here) if isinstance(place, list) else [key]
    for slot in slots:
        at = (*above, slot)
        if not below:
            place[slot] = copied(value)
            yield at
            continue
        place[slot] = _as_mapping(place[slot] if isinstance(place, list) else place.get(slot), at)
        yield from _set(place[slot], below, value, at)


def _slots(key: str, entries: list[Any], here: str) -> list[int]:
    if key.isdecimal() and int(key) < len(entries):
        return [int(key)]
    if key == ANY and entries:
        return [*range(len(entries))]
    allowed = f"0 to {len(entries) - 1}, or * for all of them" if entries else "none, it is empty"
    raise ValueError(f"'{key}' is not an entry of the list '{here}'; allowed: {allowed}")


def _as_mapping(inner: Any, keys: Keys) -> Any:
    """The container to continue in: a mapping for None or a name; anything else unchanged."""
    if inner is None:
        return {}
    if isinstance(inner, str):
        match keys:
            case ["system"]:
                return {"name": inner}
            case ["system", _] | ["workload", "partition"]:
                return {"kind": inner}
            case ["cluster", "wan", "matrix" | "rtt_matrix"]:
                return {"file": inner}
    return inner


def anchored(value: Any, keys: Sequence[str], folder: Path) -> Any:
    """The value for a path, with absolute paths of files, which are relative to that folder."""
    if isinstance(value, dict):
        return {each: anchored(inner, [*keys, str(each)], folder) for each, inner in value.items()}
    if isinstance(value, list):
        return [anchored(each, keys, folder) for each in value]
    names_file = isinstance(value, str) and any(tuple(keys[-len(end) :]) == end for end in _FILES)
    # Catalogs that ship have names that are no files.
    if not names_file or (keys[-1] == "catalog" and not (folder / value).exists()):
        return value
    return str((folder / value).absolute())


def copied(data: Any) -> Any:
    """A copy of plain data, several times faster than `copy.deepcopy`."""
    if isinstance(data, dict):
        return {key: copied(value) for key, value in data.items()}
    return [copied(value) for value in data] if isinstance(data, list) else data
