"""The settings in which runs differ, which distinguish them in tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from dlion_sim.results.reading import Run

Settings = Mapping[str, Any]
"""Plain values of a scenario by dotted path."""
_OMITTED = ("name", "description", "seed", "modules")
_OF_SYSTEM = "system."
_MOST_SETTINGS = 50
"""If more settings differ, the first ones are used."""
_MOST_VALUES = 200_000
"""Values of a scenario that are compared: only hostile scenarios and traces have more."""


def differing(runs: Sequence[Run]) -> list[Settings]:
    """Each run's values of the settings that differ between runs, by path.

    Settings are compared among runs of scenarios with one name, and those of systems among runs of one system: others
    differ in too many. A list of varying length counts as its length. Only the first 50 settings are used. In a sweep
    they are its axes, with the sweep's labels unless these are numbers. Raises InputError for a scenario that cannot be
    read.
    """
    settings = _all_settings(runs)
    by_scenario: dict[str, list[Settings]] = {}
    by_system: dict[tuple[str, str], list[Settings]] = {}
    for run, own in zip(runs, settings, strict=True):
        scenario, system = str(run.manifest.get("scenario")), str(run.manifest.get("system"))
        by_scenario.setdefault(scenario, []).append(own)
        by_system.setdefault((scenario, system), []).append(own)
    axes = list(dict.fromkeys(path for run in runs for path in run.point if path not in ("seed", "system")))
    paths = [path for some in by_scenario.values() for path in _differing(some) if not path.startswith(_OF_SYSTEM)]
    paths += [path for some in by_system.values() for path in _differing(some) if path.startswith(_OF_SYSTEM)]
    others = [path for path in dict.fromkeys(paths) if not any(f"{path}.".startswith(f"{axis}.") for axis in axes)]
    return [
        {path: value for path in (*axes, *others[:_MOST_SETTINGS]) if (value := _value(run, own, path)) is not None}
        for run, own in zip(runs, settings, strict=True)
    ]


def _value(run: Run, settings: Settings, path: str) -> Any:
    value = settings.get(path)
    return run.point[path] if path in run.point and not isinstance(value, int | float) else value


def _differing(settings: Sequence[Settings]) -> Iterator[str]:
    first, *others = settings
    for path in dict.fromkeys(path for each in settings for path in each):
        if any(each.get(path) != first.get(path) for each in others):
            yield path


def _all_settings(runs: Sequence[Run]) -> list[Settings]:
    """Of each run; equal texts are read once."""
    read: dict[str, list[tuple[str, Any]]] = {}
    for run in runs:
        if run.apart_from_seed not in read:
            found = ((path, value) for path, value in values_by_path(run.scenario) if path not in _OMITTED)
            read[run.apart_from_seed] = list(islice(found, _MOST_VALUES))
    lengths: dict[str, set[int]] = {}
    for values in read.values():
        for path, value in values:
            if isinstance(value, list):
                lengths.setdefault(path, set()).add(len(value))
    uneven = {path for path, found in lengths.items() if len(found) > 1}
    plain = {text: dict(_plain(values, uneven)) for text, values in read.items()}
    return [plain[run.apart_from_seed] for run in runs]


def values_by_path(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value of plain data with its dotted path, containers before their entries."""
    yield path, value
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from values_by_path(inner, f"{path}.{key}" if path else str(key))


def _plain(values: Iterable[tuple[str, Any]], uneven: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Values that are no containers, and the lengths of lists of varying length."""
    inside = ""
    for path, value in values:
        if inside and path.startswith(inside):
            continue
        if path in uneven and isinstance(value, list):
            inside = f"{path}."
            yield path, len(value)
        elif not isinstance(value, dict | list):
            yield path, value
