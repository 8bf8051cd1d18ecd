"""Setting single values of a scenario: "cluster.clouds.0.workers.0.nic=20 Mbps"."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from dlion_sim.errors import InputError
from dlion_sim.yaml_text import read_yaml


def overridden(data: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """A copy of the data with each "dotted.path=value" set, the value being YAML.

    Numbers index lists. Mappings that are missing on the way are made, and a short form that is a name ("dlion")
    becomes the mapping that it stands for.

    Raises:
        InputError: An override is no such text, or its path leads nowhere.
    """
    changed = copy.deepcopy(dict(data))
    for override in overrides:
        path, equals, text = override.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise InputError(
                "an override is written dotted.path=value, e.g. duration=60 s", file=f"`overrides` {override}"
            )
        try:
            set_value(changed, keys, read_yaml(text))
        except ValueError as error:
            raise InputError(str(error), file=f"`overrides` {override}") from None
    return changed


def set_value(data: dict[str, Any], keys: Sequence[str], value: object) -> None:
    """Set the value at the path of `keys` below `data`, in place. Raises ValueError where that leads nowhere."""
    place: Any = data
    for depth, key in enumerate(keys):
        here = ".".join(keys[:depth])
        slot: Any = key
        if isinstance(place, list):
            slot = _index(key, place, here)
        elif not isinstance(place, dict):
            raise ValueError(f"'{here}' is {place!r}, which has no '{key}' to set; set '{here}' itself")
        if depth == len(keys) - 1:
            place[slot] = value
            return
        inner = place[slot] if isinstance(place, list) else place.get(slot)
        inner = _as_mapping(inner, keys[: depth + 1])
        place[slot] = inner
        place = inner


def _index(key: str, entries: list[Any], here: str) -> int:
    if key.isdecimal() and int(key) < len(entries):
        return int(key)
    allowed = f"0 to {len(entries) - 1}" if entries else "none, it is empty"
    raise ValueError(f"'{key}' is no entry of the list '{here}'; allowed: {allowed}")


def _as_mapping(inner: Any, path: Sequence[str]) -> Any:
    """What to go on in: a mapping in place of nothing or of a name; anything else as it is."""
    if inner is None:
        return {}
    if isinstance(inner, str):
        match path:
            case ["system"]:
                return {"name": inner}
            case ["system", _] | ["workload", "partition"]:
                return {"kind": inner}
    return inner
