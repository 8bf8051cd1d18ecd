"""How groups of runs are spread over a figure: a panel an environment, a line or a bar a system and transport."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dlion_sim.analysis.groups import Group, note, varying
from dlion_sim.figures.looks import Look, look_in_order, system_looks


@dataclass(frozen=True)
class Panels:
    """What to call each panel and each line, and which of them a group is.

    Where all groups are of one system, the environments are the lines of a single panel; so are runs by themselves.
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
    _panel_keys: tuple[str, ...]
    _line_keys: tuple[str, ...]

    @classmethod
    def of(cls, groups: Sequence[Group]) -> Panels:
        """The panels of some groups, of which there is at least one."""
        keys = varying(groups)
        line_keys = _line_keys(keys)
        by_line: dict[str, list[Group]] = {}
        for group in groups:
            by_line.setdefault(group.named(line_keys), []).append(group)
        overlaid = not {"run", "label"}.isdisjoint(keys) and len(by_line) == len(groups)
        panel_keys = () if overlaid else tuple(key for key in keys if key not in line_keys)
        names = tuple(_noted(line, of_line) for line, of_line in by_line.items())
        heading = " · ".join(groups[0].labels[key] for key in ("scenario", "system") if key not in keys)
        return cls(
            heading=heading if len(names) > 1 else _noted(heading, groups),
            panels=tuple(dict.fromkeys(group.named(panel_keys) for group in groups)),
            lines=tuple(by_line),
            names=names,
            looks=_looks({line: of_line[0].labels["system"] for line, of_line in by_line.items()}),
            _panel_keys=panel_keys,
            _line_keys=line_keys,
        )

    def panel(self, group: Group) -> int:
        """The number of a group's panel."""
        return self.panels.index(group.named(self._panel_keys))

    def line(self, group: Group) -> int:
        """The number of a group's line."""
        return self.lines.index(group.named(self._line_keys))

    def look(self, group: Group) -> Look:
        """That of a group's line."""
        return self.looks[self.line(group)]


def _line_keys(keys: Sequence[str]) -> tuple[str, ...]:
    """The labels that are told by lines; what else differs is told by panels."""
    if "label" in keys:
        return ("label",)
    if "system" not in keys and "transport" not in keys:
        return tuple(keys)
    return tuple(key for key in ("system", "transport", "run") if key in keys)


def _looks(systems: Mapping[str, str]) -> tuple[Look, ...]:
    """Of lines by name, each of some system: the system's, but where several are of one."""
    counts = Counter(systems.values())
    if len(counts) == 1 < len(systems):
        return tuple(map(look_in_order, range(len(systems))))
    return tuple(system_looks([each if counts[each] == 1 else f"{each}, {line}" for line, each in systems.items()]))


def _noted(name: str, groups: Sequence[Group]) -> str:
    noted = note(groups)
    return f"{name} ({noted})" if noted else name
