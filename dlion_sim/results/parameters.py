"""The settings in which runs differ, to tell them apart in tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from dlion_sim.results.reading import Run

Settings = Mapping[str, Any]
"""Plain values of a scenario by dotted path."""
_SAID_ANYWAY = ("name", "description", "seed", "modules")
_OF_SYSTEM = "system."
_MOST_TOLD = 50
"""Of settings: where more differ, the first of them tell the runs apart."""
_MOST_VALUES = 200_000
"""Of a scenario that are looked at: more are in one that was made to be in the way, or in traces."""


def differing(runs: Sequence[Run]) -> list[Settings]:
    """Of each run its values of the settings in which some runs differ, by path.

    Scenarios of unlike names differ in too much to be told, and so do the parts of unlike systems: settings are those
    in which runs of one scenario differ, and those of systems in which runs of one system do. A list that is not as
    long everywhere counts as its length. Of many settings only the first 50 are told. Of a sweep's runs they are its
    axes, with the sweep's labels unless these are numbers. Raises InputError for a scenario that cannot be read.
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
        {path: value for path in (*axes, *told[:_MOST_TOLD]) if (value := _value(run, own, path)) is not None}
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
    read: dict[str, list[tuple[str, Any]]] = {}
    for run in runs:
        if run.apart_from_seed not in read:
            read[run.apart_from_seed] = list(islice(_values(run.scenario), _MOST_VALUES))
    lengths: dict[str, set[int]] = {}
    for values in read.values():
        for path, value in values:
            if isinstance(value, list):
                lengths.setdefault(path, set()).add(len(value))
    uneven = {path for path, found in lengths.items() if len(found) > 1}
    plain = {text: dict(_plain(values, uneven)) for text, values in read.items()}
    return [plain[run.apart_from_seed] for run in runs]


def _values(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value with its path, what holds others before these."""
    yield path, value
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if path or key not in _SAID_ANYWAY:
                yield from _values(inner, f"{path}.{key}" if path else str(key))


def _plain(values: Iterable[tuple[str, Any]], uneven: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Those that hold no others, and lists that are not as long everywhere by their lengths."""
    inside = ""
    for path, value in values:
        if inside and path.startswith(inside):
            continue
        if path in uneven and isinstance(value, list):
            inside = f"{path}."
            yield path, len(value)
        elif not isinstance(value, dict | list):
            yield path, value
