"""The settings in which runs differ, to tell them apart in tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dlion_sim.results.reading import Run

Settings = Mapping[str, Any]
"""Plain values of a scenario by dotted path."""
_SAID_ANYWAY = ("name", "description", "seed", "modules")
_OF_SYSTEM = "system."


def differing(runs: Sequence[Run]) -> list[Settings]:
    """Of each run its values of the settings in which some runs differ, by path.

    Scenarios of unlike names differ in too much to be told, and so do the parts of unlike systems: settings are those
    in which runs of one scenario differ, and those of systems in which runs of one system do. A list that is not as
    long everywhere counts as its length. Of a sweep's runs they are its axes, with the sweep's labels unless these are
    numbers. Raises InputError for a scenario that cannot be read.
    """
    settings = _all_settings(runs)
    kinds: dict[tuple[str, str], list[int]] = {}
    scenarios: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        scenario, system = str(run.manifest.get("scenario")), str(run.manifest.get("system"))
        scenarios.setdefault(scenario, []).append(number)
        kinds.setdefault((scenario, system), []).append(number)
    axes = list(dict.fromkeys(path for run in runs for path in run.point if path not in ("seed", "system")))
    paths = [path for alike in scenarios.values() for path in _differing(settings, alike) if not _is_of_system(path)]
    paths += [path for alike in kinds.values() for path in _differing(settings, alike) if _is_of_system(path)]
    told = [path for path in dict.fromkeys(paths) if not any(f"{path}.".startswith(f"{axis}.") for axis in axes)]
    return [
        {path: value for path in (*axes, *told) if (value := _value(run, own, path)) is not None}
        for run, own in zip(runs, settings, strict=True)
    ]


def _value(run: Run, settings: Settings, path: str) -> Any:
    value = settings.get(path)
    return run.point[path] if path in run.point and not isinstance(value, int | float) else value


def _is_of_system(path: str) -> bool:
    return path.startswith(_OF_SYSTEM)


def _differing(settings: Sequence[Settings], alike: Sequence[int]) -> Iterator[str]:
    own = [settings[number] for number in alike]
    for path in dict.fromkeys(path for each in own for path in each):
        if any(each.get(path) != own[0].get(path) for each in own[1:]):
            yield path


def _all_settings(runs: Sequence[Run]) -> list[Settings]:
    """Of each run; what is the same text is read once."""
    read: dict[str, Any] = {}
    for run in runs:
        read.setdefault(run.apart_from_seed, run.scenario)
    lengths: dict[str, set[int]] = {}
    for scenario in read.values():
        _measure(scenario, "", lengths)
    uneven = {path for path, found in lengths.items() if len(found) > 1}
    flat = {text: dict(_flat(scenario, "", uneven)) for text, scenario in read.items()}
    return [flat[run.apart_from_seed] for run in runs]


def _measure(value: Any, path: str, lengths: dict[str, set[int]]) -> None:
    """How long the lists are at each path."""
    if isinstance(value, list):
        lengths.setdefault(path, set()).add(len(value))
    for key, inner in _inside(value):
        _measure(inner, _below(path, key), lengths)


def _flat(value: Any, path: str, uneven: set[str]) -> Iterator[tuple[str, Any]]:
    """Each plain value with its path, and the lengths of lists that are not as long everywhere."""
    if path in uneven and isinstance(value, list):
        yield path, len(value)
    elif isinstance(value, dict | list):
        for key, inner in _inside(value):
            if path or key not in _SAID_ANYWAY:
                yield from _flat(inner, _below(path, key), uneven)
    else:
        yield path, value


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((str(key), inner) for key, inner in value.items())
    elif isinstance(value, list):
        yield from ((str(number), inner) for number, inner in enumerate(value))


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
