"""What tells groups of runs apart: the axes of a sweep and the system, their values in order, and colours for these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.colors import to_hex, to_rgb

from dlion_sim.analysis import varying
from dlion_sim.analysis.groups import Group, ranks
from dlion_sim.figures.looks import DASHES, OWN_DASHES, Look, look_in_order, system_looks
from dlion_sim.figures.panels import Panels, line_keys
from dlion_sim.results import headings

_PLOTLY = ("solid", "dash", "dot", "dashdot", "longdash", "8px,3px,2px,3px,2px,3px", "longdashdot")
_DASHES = dict(zip((*DASHES, *OWN_DASHES), _PLOTLY, strict=True))
"""As Plotly calls them."""
_DARK, _LIGHTER = 0.15, 0.5
"""The luminance of colours that do not show on a dark ground, and how far they are moved towards white there."""


def axes(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The labels that are not the same in all groups, and the system.

    An entry each: `heading`; its `values` in order; of each of them its look, `colours` on a light and `dark` on a dark
    ground, and `dashes`; and by group the number of its value in `places`.
    """
    keys = list(dict.fromkeys([*varying(groups), "system"]))
    names = headings(keys)
    told = []
    for key in keys:
        own = [group.labels.get(key, "") for group in groups]
        rank = ranks(own)
        values = sorted(rank, key=lambda value: rank[value])
        looks = system_looks(values) if key == "system" else [*map(look_in_order, range(len(values)))]
        told.append(
            {
                "heading": names[key].replace("_", " "),
                "values": [value or "-" for value in values],
                **_looks(looks),
                "places": [values.index(value) for value in own],
            }
        )
    return told


def colouring(groups: Sequence[Group]) -> dict[str, Any]:
    """By what groups are coloured unless a reader chooses an axis: as figures tell their lines apart.

    That is one of the axes, or several of them together; for the keys see `axes`.
    """
    keys, panels = line_keys(groups) or ("system",), Panels.of(groups)
    names = headings(keys)
    return {
        "heading": " and ".join(names[key].replace("_", " ") for key in keys),
        "values": [line or "-" for line in panels.lines],
        **_looks(panels.looks),
        "places": [panels.line(group) for group in groups],
    }


def _looks(looks: Sequence[Look]) -> dict[str, list[str]]:
    return {
        "colours": [look.colour for look in looks],
        "dark": [_on_dark(look.colour) for look in looks],
        "dashes": [_DASHES[look.dashes] for look in looks],
    }


def _on_dark(colour: str) -> str:
    """The colour, or a lighter one of its hue that shows on a dark ground."""
    red, green, blue = to_rgb(colour)
    if 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 > _DARK:
        return colour
    return to_hex((red + _LIGHTER * (1 - red), green + _LIGHTER * (1 - green), blue + _LIGHTER * (1 - blue)))
