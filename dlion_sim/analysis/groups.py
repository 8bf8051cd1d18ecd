"""Runs that differ in nothing but their seed, and what tells such groups apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlion_sim.errors import InputError
from dlion_sim.metric import Metric
from dlion_sim.results import Run, in_words, run_names, scenario_label, system_label, untold
from dlion_sim.results import note as note_of
from dlion_sim.scenario import BANDWIDTH, CORES, DURATION

REFERENCE = "baseline"
"""The system that others are compared with."""
_PLAIN = ("scenario", "system", "transport", "way", "run", "label")
"""Labels whose values need no word of what they are."""
_MOST_DIFFERENCES = 2
"""Of settings that groups are named by."""


@dataclass(frozen=True)
class Group:
    """Runs of one scenario, made the same way, with different seeds."""

    labels: Mapping[str, str]
    """What to tell it apart by: scenario, the values of a sweep's axes, ..., system; no two groups have the same.

    What their metric was measured on is one, so that no speed-up is told between groups that differ in it.
    """
    runs: tuple[Run, ...]

    @property
    def completed(self) -> tuple[Run, ...]:
        """Those of the runs that are."""
        return tuple(run for run in self.runs if run.manifest["status"] == "completed")

    @property
    def samples(self) -> Mapping[tuple[int, int], Run]:
        """The completed runs that are independent of each other, by seed and number of the repetition.

        A simulation that is repeated is the same once more, and not another sample as a live run is.
        """
        samples: dict[tuple[int, int], Run] = {}
        repetitions: Counter[int] = Counter()
        for run in self.completed:
            seed = int(run.manifest.get("seed", 0))
            samples.setdefault((seed, repetitions[seed]), run)
            repetitions[seed] += not run.is_virtual
        return samples

    @property
    def is_reference(self) -> bool:
        """Whether it is Baseline as it stands, with nothing replaced, whatever it is labelled."""
        return self.runs[0].system == REFERENCE

    @property
    def environment(self) -> tuple[tuple[str, str], ...]:
        """All that it is told apart by, except its system."""
        others = ("system", "run", "label")
        return tuple((key, value) for key, value in self.labels.items() if key.split(".")[0] not in others)

    def named(self, keys: Iterable[str]) -> str:
        """Its values of some labels in a line, e.g. "dlion, bandwidth 20 Mbps"."""
        return ", ".join(said(key, self.labels[key]) for key in keys if key in self.labels)


def group_runs(runs: Iterable[Run]) -> list[Group]:
    """The groups, sorted by environment and then system.

    Groups that no label tells apart have one more, `run`: the settings in which they differ, or their folders' names.
    Labels that are numbers or quantities are in that order, others in the order of their first runs; only Baseline goes
    before other systems. Raises InputError for a run that cannot be read.
    """
    together: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        together.setdefault((_way(run), run.apart_from_seed), []).append(run)
    return in_order(_told_apart([Group(_labels(group[0]), tuple(group)) for group in together.values()]))


def in_order(groups: Iterable[Group]) -> list[Group]:
    """The groups, sorted as those of `group_runs` are."""
    ordered = list(groups)
    for key in reversed(varying(ordered)):
        rank = ranks([group.labels.get(key, "") for group in ordered])
        ordered.sort(key=lambda group: rank[group.labels.get(key, "")])
    return ordered


def labelled(groups: Iterable[Group], label: str) -> list[Group]:
    """The groups, told apart from others by a label of the user's."""
    return [Group({**group.labels, "label": label}, group.runs) for group in groups]


def varying(groups: Sequence[Group]) -> list[str]:
    """The labels that are not the same in all groups."""
    keys = dict.fromkeys(key for group in groups for key in group.labels)
    return [key for key in keys if len({group.labels.get(key) for group in groups}) > 1]


def metric_of(groups: Iterable[Group]) -> Metric:
    """The metric by which all of them are evaluated. Raises InputError where that is not one."""
    folders = {run.metric: run.folder for group in groups for run in group.runs}
    one, *others = folders
    if others:
        problem = f"is evaluated by {others[0].name}, and {folders[one]} by {one.name}"
        raise InputError(problem, file=folders[others[0]], allowed="runs of one metric")
    return one


def metric_name(groups: Sequence[Group]) -> str:
    """What to call its values, e.g. "test accuracy"; "accuracy" alone where they are not of one set."""
    sets = {run.evaluated_on for group in groups for run in group.runs}
    name = metric_of(groups).name
    return f"{sets.pop()} {name}" if len(sets) == 1 else name


def said(key: str, value: str) -> str:
    """A label in words, e.g. "bandwidth 20 Mbps" for that value of "cluster.wan.bandwidth"."""
    return value if key in _PLAIN else in_words(key, value)


def note(groups: Iterable[Group]) -> str:
    """What to note at groups of such runs, see `dlion_sim.results.note`."""
    return note_of([run for group in groups for run in group.runs])


def _told_apart(groups: Sequence[Group]) -> list[Group]:
    """The groups, those with the same labels also with what differs in their scenarios, or else with their folders."""
    alike: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for number, group in enumerate(groups):
        alike.setdefault(tuple(group.labels.items()), []).append(number)
    told = list(groups)
    folders = run_names([group.runs[0].folder for group in groups])
    for numbers in alike.values():
        if len(numbers) > 1:
            differences = _differences([groups[number].runs[0] for number in numbers])
            names = differences or [folders[number] for number in numbers]
            for number, name in zip(numbers, names, strict=True):
                told[number] = Group({**groups[number].labels, "run": name}, groups[number].runs)
    return told


def _differences(runs: Sequence[Run]) -> list[str]:
    """In which settings the runs differ, in words; nothing where these are many, or no plain values."""
    settings = [dict(_settings(run.scenario)) for run in runs]
    paths = dict.fromkeys(path for of_run in settings for path in of_run)
    differing = [path for path in paths if len({str(of_run.get(path)) for of_run in settings}) > 1]
    values = [of_run.get(path) for of_run in settings for path in differing]
    if len(differing) > _MOST_DIFFERENCES or any(value is None or isinstance(value, list) for value in values):
        return []
    names = [", ".join(in_words(path, str(of_run[path])) for path in differing) for of_run in settings]
    return names if len(set(names)) == len(names) else []


def _settings(given: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Each value of a scenario that is no mapping, by path, but for those that say nothing of what was run."""
    for key, value in given.items():
        if isinstance(value, Mapping):
            yield from _settings(value, f"{above}{key}.")
        elif above or key not in ("name", "description", "seed", "modules"):
            yield f"{above}{key}", value


def ranks(values: Iterable[str]) -> dict[str, float]:
    """By what to sort some values: their magnitudes if all have one, else their order."""
    different = sorted(dict.fromkeys(values), key=lambda value: value != REFERENCE)
    for read in (float, BANDWIDTH.parse, DURATION.parse, CORES.parse):
        try:
            return {value: read(value) for value in different}
        except ValueError:
            pass
    return {value: rank for rank, value in enumerate(different)}


def _labels(run: Run) -> dict[str, str]:
    transport = run.manifest.get("transport", "reliable")  # of before there was another
    labels = {"scenario": scenario_label(run.manifest), "transport": transport}
    labels |= {key: value for key, value in run.point.items() if key not in ("base", "seed", "system")}
    if not run.is_virtual:
        labels["way"] = _way(run)
    labels["evaluated_on"] = run.evaluated_on
    return {**labels, "system": _system(run)}


def _system(run: Run) -> str:
    """What its sweep calls its system, unless that is a plain name for something else; or else what it is."""
    axes = [key for key in run.point if key != "system"]
    chosen = run.point.get("system")
    kinds_replaced = any("." not in path for path in untold(run.manifest, axes))
    if chosen and not (chosen == run.manifest.get("system") and kinds_replaced):
        return chosen
    return system_label(run.manifest, axes)


def _way(run: Run) -> str:
    return str(run.manifest.get("way", "simulate"))
