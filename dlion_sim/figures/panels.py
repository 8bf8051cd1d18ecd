"""How groups of runs are spread over a figure: a panel an environment, a line or a bar a system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlion_sim.analysis.groups import Group, varying, without_exchange
from dlion_sim.figures.style import look_numbers


@dataclass(frozen=True)
class Panels:
    """What to call each panel and each line, and which of them a group is.

    Where all groups are of one system, the environments are the lines of a single panel.
    """

    heading: str
    """What all groups have in common."""
    panels: tuple[str, ...]
    """Of a single panel the name is empty."""
    lines: tuple[str, ...]
    """Of a single line the name is empty."""
    names: tuple[str, ...]
    """What to write for each line: it, and a note where its workers did not exchange anything."""
    looks: tuple[int, ...]
    """The number of each line's look."""
    _panel_keys: tuple[str, ...]
    _line_keys: tuple[str, ...]

    @classmethod
    def of(cls, groups: Sequence[Group]) -> Panels:
        """The panels of some groups, of which there is at least one."""
        keys = varying(groups)
        line_keys = ("system",) if "system" in keys else tuple(keys)
        panel_keys = tuple(key for key in keys if key not in line_keys)
        by_line: dict[str, list[Group]] = {}
        for group in groups:
            by_line.setdefault(group.named(line_keys), []).append(group)
        names = tuple(_noted(line, of_line) for line, of_line in by_line.items())
        heading = " · ".join(groups[0].labels[key] for key in ("scenario", "system") if key not in keys)
        return cls(
            heading=heading if len(names) > 1 else _noted(heading, groups),
            panels=tuple(dict.fromkeys(group.named(panel_keys) for group in groups)),
            lines=tuple(by_line),
            names=names,
            looks=look_numbers([line or groups[0].labels["system"] for line in by_line]),
            _panel_keys=panel_keys,
            _line_keys=line_keys,
        )

    def panel(self, group: Group) -> int:
        """The number of a group's panel."""
        return self.panels.index(group.named(self._panel_keys))

    def line(self, group: Group) -> int:
        """The number of a group's line."""
        return self.lines.index(group.named(self._line_keys))

    def look(self, group: Group) -> int:
        """The number of the look of a group's line."""
        return self.looks[self.line(group)]


def _noted(name: str, groups: Sequence[Group]) -> str:
    note = without_exchange(groups)
    return f"{name} ({note})" if note else name
