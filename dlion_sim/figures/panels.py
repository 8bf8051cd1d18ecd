"""How groups of runs are spread over a figure: a panel an environment, a line or a bar a system and transport."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlion_sim.analysis.groups import Group, note, varying
from dlion_sim.figures.looks import Look, look_in_order, system_looks

_MOST_LISTED = 3


@dataclass(frozen=True)
class Panels:
    """What to call each panel and each line, and which of them a group is.

    Where all groups are of one system, the environments are the lines of a single panel; so are runs by themselves, as
    long as they learn the same, and whatever the user labels.
    """

    heading: str
    """What all groups have in common."""
    panels: tuple[str, ...]
    """Of a single panel the name is empty."""
    lines: tuple[str, ...]
    """Of a single line the name is empty."""
    names: tuple[str, ...]
    """What to write for each line: it, and a note where its workers did not exchange anything."""
    looks: tuple[Look, ...]
    """Of each line."""
    notes: tuple[str, ...]
    """What to say of lines in one panel that learn unlike things."""
    _panel_keys: tuple[str, ...]
    _with_learned: bool
    _line_keys: tuple[str, ...]

    @classmethod
    def of(cls, groups: Sequence[Group]) -> Panels:
        """The panels of some groups, of which there is at least one."""
        keys = varying(groups)
        by_keys = line_keys(groups)
        by_line: dict[str, list[Group]] = {}
        for group in groups:
            by_line.setdefault(group.named(by_keys), []).append(group)
        are_apart = not {"run", "label"}.isdisjoint(keys)
        learned = {line: _learned(of_line[0]) for line, of_line in by_line.items()} if are_apart else {}
        are_unlike = len({*learned.values()}) > 1
        overlaid = are_apart and len(by_line) == len(groups) and ("label" in keys or not are_unlike)
        panel_keys = () if overlaid else tuple(key for key in keys if key not in by_keys)
        with_learned = are_unlike and not overlaid
        names = tuple(_noted(line, of_line) for line, of_line in by_line.items())
        common = {key: groups[0].labels[key] for key in ("scenario", "system") if key not in keys}
        if overlaid and "scenario" not in common:
            common = {"scenario": _listed(group.labels["scenario"] for group in groups), **common}
        heading = " · ".join(common.values())
        return cls(
            heading=heading if len(names) > 1 else _noted(heading, groups),
            panels=tuple(dict.fromkeys(_panel(group, panel_keys, with_learned=with_learned) for group in groups)),
            lines=tuple(by_line),
            names=names,
            looks=_looks({line: of_line[0].labels["system"] for line, of_line in by_line.items()}),
            notes=()
            if not (are_unlike and overlaid)
            else (f"unlike workloads: {_listed(map(_told, learned.items()))}",),
            _panel_keys=panel_keys,
            _with_learned=with_learned,
            _line_keys=by_keys,
        )

    def panel(self, group: Group) -> int:
        """The number of a group's panel."""
        return self.panels.index(_panel(group, self._panel_keys, with_learned=self._with_learned))

    def line(self, group: Group) -> int:
        """The number of a group's line."""
        return self.lines.index(group.named(self._line_keys))

    def look(self, group: Group) -> Look:
        """That of a group's line."""
        return self.looks[self.line(group)]


def line_keys(groups: Sequence[Group]) -> tuple[str, ...]:
    """The labels that are told by lines; what else differs is told by panels."""
    keys = varying(groups)
    if "label" in keys:
        return ("label",)
    if "system" not in keys and "transport" not in keys:
        return tuple(keys)
    return tuple(key for key in ("system", "transport", "run") if key in keys)


def _learned(group: Group) -> str:
    """The data set and the model of a group's runs."""
    workload = group.runs[0].scenario.get("workload")
    told = [workload.get(key) for key in ("dataset", "model")] if isinstance(workload, Mapping) else []
    return " ".join(str(each.get("name", "")) if isinstance(each, Mapping) else str(each) for each in told if each)


def _panel(group: Group, keys: Sequence[str], *, with_learned: bool) -> str:
    return ", ".join(filter(None, [_learned(group) if with_learned else "", group.named(keys)]))


def _told(learned: tuple[str, str]) -> str:
    line, what = learned
    return f"{what} ({line})"


def _listed(names: Iterable[str]) -> str:
    """Names in a line, each once, and of many the number of others."""
    different = list(dict.fromkeys(names))
    rest = len(different) - _MOST_LISTED
    return ", ".join(different[:_MOST_LISTED]) + (f" and {rest} others" if rest > 0 else "")


def _looks(systems: Mapping[str, str]) -> tuple[Look, ...]:
    """Of lines by name, each of some system: the system's, but where several are of one."""
    counts = Counter(systems.values())
    if len(counts) == 1 < len(systems):
        return tuple(map(look_in_order, range(len(systems))))
    return tuple(system_looks([each if counts[each] == 1 else f"{each}, {line}" for line, each in systems.items()]))


def _noted(name: str, groups: Sequence[Group]) -> str:
    noted = note(groups)
    return f"{name} ({noted})" if noted else name


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
