"""Layout of groups in a figure: a panel for each environment, a line or bar for each system and transport."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlion_sim.analysis.groups import Group, is_own, note, varying
from dlion_sim.figures.looks import Look, look_in_order, system_looks
from dlion_sim.results import Run

_MAX_LISTED = 3
_MAX_CLOUDS = 8
"""With a line each."""


class Panels:
    """The names of panels and lines, and the panel and line of each group.

    If all groups are of one system, the environments are the lines of a single panel; so are single runs with the same
    workload, and groups with labels of the user.
    """

    def __init__(self, groups: Sequence[Group]) -> None:
        """The panels of at least one group."""
        keys = [key for key in varying(groups) if not is_own(key)]
        self._line_keys = line_keys(groups)
        by_line: dict[str, list[Group]] = {}
        for group in groups:
            by_line.setdefault(group.named(self._line_keys), []).append(group)
        are_apart = not {"run", "label"}.isdisjoint(keys)
        learned = {line: _learned(of_line[0]) for line, of_line in by_line.items()} if are_apart else {}
        are_unlike = len({*learned.values()}) > 1
        overlaid = are_apart and len(by_line) == len(groups) and ("label" in keys or not are_unlike)
        self._panel_keys = () if overlaid else tuple(key for key in keys if key not in self._line_keys)
        self._with_learned = are_unlike and not overlaid
        self.panels = tuple(dict.fromkeys(map(self._panel, groups)))
        """Names; a single panel's is empty."""
        self.lines = tuple(by_line)
        """Names; a single line's is empty."""
        self.names = tuple(_noted(line, of_line) for line, of_line in by_line.items())
        """The text for each line: its name, and the note on its runs if there is one."""
        self.looks = _looks({line: of_line[0].labels["system"] for line, of_line in by_line.items()})
        """The look of each line."""
        common = {key: groups[0].labels[key] for key in ("scenario", "system") if key not in keys}
        if overlaid and "scenario" not in common:
            common = {"scenario": _listed(group.labels["scenario"] for group in groups), **common}
        heading = " · ".join(common.values())
        self.heading = heading if len(self.names) > 1 else _noted(heading, groups)
        """What all groups have in common."""
        self.notes: list[str] = []
        """On lines of different workloads in one panel."""
        if are_unlike and overlaid:
            self.notes = [f"different workloads: {_listed(f'{what} ({line})' for line, what in learned.items())}"]

    def panel(self, group: Group) -> int:
        return self.panels.index(self._panel(group))

    def line(self, group: Group) -> int:
        return self.lines.index(group.named(self._line_keys))

    def look(self, group: Group) -> Look:
        return self.looks[self.line(group)]

    def _panel(self, group: Group) -> str:
        """The name of a group's panel."""
        return ", ".join(filter(None, [_learned(group) if self._with_learned else "", group.named(self._panel_keys)]))


def line_keys(groups: Sequence[Group]) -> tuple[str, ...]:
    """The labels that lines show; panels show other ones that differ."""
    keys = varying(groups)
    if "label" in keys:
        return ("label",)
    if "system" not in keys and "transport" not in keys:
        return tuple(keys)
    return tuple(key for key in ("system", "transport", "run") if key in keys)


def _learned(group: Group) -> str:
    """The data set and the model of a group's runs."""
    workload = group.runs[0].scenario.get("workload")
    values = [workload.get(key) for key in ("dataset", "model")] if isinstance(workload, Mapping) else []
    return " ".join(str(each.get("name", "")) if isinstance(each, Mapping) else str(each) for each in values if each)


def _listed(names: Iterable[str]) -> str:
    """Distinct names as text; of many, the first ones and the number of others."""
    different = list(dict.fromkeys(names))
    rest = len(different) - _MAX_LISTED
    return ", ".join(different[:_MAX_LISTED]) + (f" and {rest} others" if rest > 0 else "")


def _looks(systems: Mapping[str, str]) -> tuple[Look, ...]:
    """The looks of lines, given each line's system: the system's look, unless several lines are of one system."""
    counts = Counter(systems.values())
    if len(counts) == 1 < len(systems):
        return tuple(map(look_in_order, range(len(systems))))
    return tuple(system_looks([each if counts[each] == 1 else f"{each}, {line}" for line, each in systems.items()]))


def _noted(name: str, groups: Sequence[Group]) -> str:
    noted = note(groups)
    return f"{name} ({noted})" if noted else name


def worker_names(run: Run) -> dict[int, str]:
    """The workers' names by number."""
    return dict(enumerate(run.manifest.get("workers", [])))


def by_cloud(workers: Iterable[int], names: Mapping[int, str]) -> dict[str, list[int]]:
    """Workers by micro-cloud, with its name and their number: "east (3)"."""
    clouds: dict[str, list[int]] = {}
    for worker in workers:
        clouds.setdefault(names.get(worker, str(worker)).rsplit("/", 1)[0], []).append(worker)
    return {f"{cloud} ({len(own)})": own for cloud, own in clouds.items()}


def worker_groups(run: Run, most: int) -> dict[str, list[int]]:
    """The workers of each line, by its name: one each for at most so many, else micro-clouds, or all workers.

    Where machines in a micro-cloud differ, workers with the same machine share a line: a mean over others hides them.
    """
    names = worker_names(run)
    if len(names) <= most:
        return {name: [worker] for worker, name in names.items()}
    machines = _machines(run)
    clouds = by_cloud(names, names)
    if len(machines) == len(names) and any(len({machines[one] for one in own}) > 1 for own in clouds.values()):
        alike: dict[str, list[int]] = {}
        for worker, machine in enumerate(machines):
            alike.setdefault(machine, []).append(worker)
        clouds = {f"{machine} ({len(own)})": own for machine, own in alike.items()}
    return clouds if len(clouds) <= _MAX_CLOUDS else {f"all {len(names)} workers": [*names]}


def _machines(run: Run) -> list[str]:
    """Each worker's cores, as text; empty unless all are constant."""
    clouds = run.scenario.get("cluster", {}).get("clouds", [])
    groups = [group for cloud in clouds for group in cloud["workers"]]
    cores = [group["compute"]["cores"] for group in groups for _ in range(group.get("count", 1))]
    return cores if all(isinstance(each, str) for each in cores) else []


def rows_of(panels: Panels, columns: int) -> int:
    """The number of rows of panels."""
    return -(-len(panels.panels) // columns)


class Grid:
    """A figure's panels with their titles, on shared axes; only the outermost panels have labels."""

    def __init__(self, figure: Figure, panels: Panels, columns: int) -> None:
        self._columns = columns
        self._all = figure.subplots(rows_of(panels, columns), columns, sharex=True, sharey=True, squeeze=False)
        self.axes: list[Axes] = list(self._all.flat[: len(panels.panels)])
        """By panel."""
        for axes, name in zip_longest(self._all.flat, panels.panels):
            if name is None:
                axes.set_visible(False)
            else:
                axes.set_title(", ".join(filter(None, [panels.heading, name])), wrap=True)

    def label(self, x: str, y: str) -> None:
        """Label the vertical axis at the left, the horizontal one below the lowest panel of each column."""
        for axes in self._all[:, 0]:
            axes.set_ylabel(y)
        for axes in self.axes[-self._columns :]:
            axes.set_xlabel(x)
            axes.tick_params(labelbottom=True)
