"""Labels of systems, scenarios and settings in tables and figures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any


def headings(paths: Iterable[str], taken: Collection[str] = ()) -> dict[str, str]:
    """The column name of each path: its shortest end that is unique and not `taken`, e.g. "bandwidth"."""
    dotted = [f".{path}" for path in paths]
    named = {}
    for path in dotted:
        parts = path[1:].split(".")
        ends = [".".join(parts[-count:]) for count in range(1, len(parts) + 1)]
        names = [end for end in ends if not end.split(".")[0].isdecimal() and end not in taken]
        own = [end for end in names if sum(each.endswith(f".{end}") for each in dotted) == 1]
        named[path[1:]] = own[0] if own else path[1:]
    return named


def in_words(path: str, value: str) -> str:
    """A setting, e.g. "bandwidth 20 Mbps" for that value of "cluster.wan.bandwidth"."""
    return f"{last_words(path)} {value}"


def last_words(path: str) -> str:
    """The end of a path that names it, e.g. "learning rate"; "clouds 4" of an entry of a list."""
    parts = path.split(".")
    named = next((place for place in reversed(range(len(parts))) if not parts[place].isdecimal()), 0)
    return " ".join(parts[named:]).replace("_", " ")


def system_label(manifest: Mapping[str, Any], stated: Collection[str] = ()) -> str:
    """The name of the run's system and the settings replaced in it, e.g. "dlion, weights share".

    Settings at or below the paths `stated` are omitted.
    """
    replaced = replaced_settings(manifest, stated)
    return ", ".join([str(manifest.get("system", "")), *(in_words(path, value) for path, value in replaced.items())])


def scenario_label(manifest: Mapping[str, Any]) -> str:
    """The name of the run's scenario, and the size of the model whose cost was charged, if not the trained one's."""
    cost_as = manifest.get("cost_as")
    name = str(manifest.get("scenario", ""))
    return f"{name}, charged as {cost_as['parameters']} parameters" if cost_as else name


def replaced_settings(manifest: Mapping[str, Any], stated: Collection[str] = ()) -> dict[str, str]:
    """The settings replaced in the run's system by path below `system`, except at or below the paths `stated`."""
    replaced: dict[str, str] = manifest.get("replaced", {})
    return {
        path: value
        for path, value in replaced.items()
        if not any(f"system.{path}.".startswith(f"{each}.") for each in stated)
    }
