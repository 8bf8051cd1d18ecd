"""Groups of runs that differ in their seed only, and their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlion_sim.errors import InputError
from dlion_sim.metric import Metric
from dlion_sim.results import Run, in_words, replaced_settings, run_names, scenario_label, system_label
from dlion_sim.results import note as note_of
from dlion_sim.scenario import BANDWIDTH, CORES, DURATION

REFERENCE = "baseline"
"""The system that others are compared with."""
_UNNAMED = ("scenario", "system", "transport", "way", "run", "label")
"""Labels whose values are shown without the label's name."""
_OPTIMIZER, _OWN = "workload.optimizer", "own"
"""The optimizer's path, and what begins a label that belongs to the system."""
_MAX_DIFFERENCES = 2
"""The most settings that a group is named by."""


@dataclass(frozen=True)
class Group:
    """Runs of one scenario, made the same way, with different seeds."""

    labels: Mapping[str, str]
    """Scenario, the values of a sweep's axes, the evaluation set, ..., system; unique among groups."""
    runs: tuple[Run, ...]

    @property
    def completed(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.manifest["status"] == "completed")

    @property
    def samples(self) -> Mapping[tuple[int, int], Run]:
        """The independent completed runs, by seed and number of the repetition.

        A repeated simulation is no independent sample, unlike a repeated live run.
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
        """Whether it is Baseline without replaced choices, whatever its label."""
        return self.runs[0].system == REFERENCE

    @property
    def environment(self) -> tuple[tuple[str, str], ...]:
        """All labels except its system."""
        others = ("system", "run", "label", _OWN)
        return tuple((key, value) for key, value in self.labels.items() if key.split(".")[0] not in others)

    def named(self, keys: Iterable[str]) -> str:
        """Its values of some labels as text, e.g. "dlion, bandwidth 20 Mbps"."""
        return ", ".join(label_text(key, self.labels[key]) for key in keys if key in self.labels)


def group_runs(runs: Iterable[Run]) -> list[Group]:
    """The groups, sorted by environment and then system.

    Groups with the same labels get another one, `run`: the settings in which they differ, or their folders' names.
    Numbers and quantities are in their order, other labels in the order of their first runs; Baseline is the first
    system. Raises InputError for a run that cannot be read.
    """
    together: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        together.setdefault((_way(run), run.apart_from_seed), []).append(run)
    return in_order(_disambiguated([Group(_labels(group[0]), tuple(group)) for group in together.values()]))


def in_order(groups: Iterable[Group]) -> list[Group]:
    """The groups, sorted as by `group_runs`."""
    ordered = list(groups)
    for key in reversed(varying(ordered)):
        rank = ranks([group.labels.get(key, "") for group in ordered])
        ordered.sort(key=lambda group: rank[group.labels.get(key, "")])
    return ordered


def labelled(groups: Iterable[Group], label: str) -> list[Group]:
    """The groups with a label of the user's."""
    return [Group({**group.labels, "label": label}, group.runs) for group in groups]


def with_own_optimizers(groups: Sequence[Group]) -> list[Group]:
    """The groups, with labels of the optimizer, such as its learning rate, as the system's where each system has its
    own: these are then compared in one environment."""
    of_system: dict[tuple[str, str], set[str]] = {}
    for group in groups:
        for key, value in group.labels.items():
            of_system.setdefault((key, group.labels["system"]), set()).add(value)
    several = {key for (key, _), values in of_system.items() if len(values) > 1}
    own = {key for key in varying(groups) if key.startswith(_OPTIMIZER)} - several
    return in_order([Group(_moved(group.labels, own), group.runs) for group in groups])


def _moved(labels: Mapping[str, str], own: Collection[str]) -> dict[str, str]:
    """The labels, with those of the system's own last."""
    others = {key: value for key, value in labels.items() if key not in own}
    return {**others, **{key.replace("workload", _OWN, 1): labels[key] for key in labels if key in own}}


def is_own(key: str) -> bool:
    """Whether a label belongs to the system, see `with_own_optimizers`."""
    return key.split(".")[0] == _OWN


def varying(groups: Sequence[Group]) -> list[str]:
    """The labels that differ between groups."""
    keys = dict.fromkeys(key for group in groups for key in group.labels)
    return [key for key in keys if len({group.labels.get(key) for group in groups}) > 1]


def metric_of(groups: Iterable[Group]) -> Metric:
    """The metric of all runs. Raises InputError if there are several."""
    folders = {run.metric: run.folder for group in groups for run in group.runs}
    one, *others = folders
    if others:
        problem = f"is evaluated by {others[0].name}, and {folders[one]} by {one.name}"
        raise InputError(problem, file=folders[others[0]], allowed="runs of one metric")
    return one


def metric_name(groups: Sequence[Group]) -> str:
    """The metric's name with the evaluation set, e.g. "test accuracy"; without it if sets differ."""
    sets = {run.evaluated_on for group in groups for run in group.runs}
    name = metric_of(groups).name
    return f"{sets.pop()} {name}" if len(sets) == 1 else name


def metric_label(groups: Sequence[Group]) -> str:
    """The label of an axis of the metric, e.g. "Test accuracy (%)"."""
    return f"{metric_name(groups).capitalize()}{metric_of(groups).axis}"


def label_text(key: str, value: str) -> str:
    """A label as text, e.g. "bandwidth 20 Mbps" for that value of "cluster.wan.bandwidth"."""
    return value if key in _UNNAMED else in_words(key, value)


def is_named(key: str, name: str) -> bool:
    """Whether a label is called by its path or the end of it, e.g. "bandwidth" for "cluster.wan.bandwidth"."""
    return key == name or key.endswith(f".{name}")


def note(groups: Iterable[Group]) -> str:
    """The note on the runs of some groups, see `dlion_sim.results.note`."""
    return note_of([run for group in groups for run in group.runs])


def _disambiguated(groups: Sequence[Group]) -> list[Group]:
    """The groups, with the label `run` where others are the same: differing settings, or folder names."""
    by_labels: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for number, group in enumerate(groups):
        by_labels.setdefault(tuple(group.labels.items()), []).append(number)
    found = list(groups)
    folders = run_names([group.runs[0].folder for group in groups])
    for numbers in by_labels.values():
        if len(numbers) > 1:
            differences = _differences([groups[number].runs[0] for number in numbers])
            names = differences or [folders[number] for number in numbers]
            for number, name in zip(numbers, names, strict=True):
                found[number] = Group({**groups[number].labels, "run": name}, groups[number].runs)
    return found


def _differences(runs: Sequence[Run]) -> list[str]:
    """The settings in which the runs differ, as text; empty if they are many, or no plain values."""
    settings = [dict(_settings(run.scenario)) for run in runs]
    paths = dict.fromkeys(path for of_run in settings for path in of_run)
    differing = [path for path in paths if len({str(of_run.get(path)) for of_run in settings}) > 1]
    values = [of_run.get(path) for of_run in settings for path in differing]
    if len(differing) > _MAX_DIFFERENCES or any(value is None or isinstance(value, list) for value in values):
        return []
    names = [", ".join(in_words(path, str(of_run[path])) for path in differing) for of_run in settings]
    return names if len(set(names)) == len(names) else []


def _settings(given: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Each value of a scenario by path, without those that do not affect results."""
    for key, value in given.items():
        if isinstance(value, Mapping):
            yield from _settings(value, f"{above}{key}.")
        elif above or key not in ("name", "description", "seed", "modules"):
            yield f"{above}{key}", value


def ranks(values: Iterable[str]) -> dict[str, float]:
    """The sort keys of some values: their magnitudes if all have one, else their order."""
    different = sorted(dict.fromkeys(values), key=lambda value: value != REFERENCE)
    for read in (float, BANDWIDTH.parse, DURATION.parse, CORES.parse):
        try:
            return {value: read(value) for value in different}
        except ValueError:
            pass
    return {value: rank for rank, value in enumerate(different)}


def _labels(run: Run) -> dict[str, str]:
    transport = run.manifest.get("transport", "reliable")
    labels = {"scenario": scenario_label(run.manifest), "transport": transport}
    labels |= {key: value for key, value in run.point.items() if key not in ("base", "seed", "system")}
    if not run.is_virtual:
        labels["way"] = _way(run)
    labels["evaluated_on"] = run.evaluated_on
    return {**labels, "system": _system(run)}


def _system(run: Run) -> str:
    """The sweep's label of the system, unless that is the name of another system; else its own label."""
    axes = [key for key in run.point if key != "system"]
    chosen = run.point.get("system")
    kinds_replaced = any("." not in path for path in replaced_settings(run.manifest, axes))
    if chosen and not (chosen == run.manifest.get("system") and kinds_replaced):
        return chosen
    return system_label(run.manifest, axes)


def _way(run: Run) -> str:
    return str(run.manifest.get("way", "simulate"))
