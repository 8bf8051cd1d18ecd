"""The axes in which groups of runs differ: their values in order, and colours for these."""

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
"""Their names in Plotly."""
_DARK, _LIGHTER = 0.15, 0.5
"""The luminance below which colours are lightened on a dark background, and by how much."""


def axes(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The labels that differ between groups, and the system.

    Each has a `heading`; its `values` in order; their looks, `colours` on a light and `dark` on a dark background, and
    `dashes`; and the number of each group's value, `places`.
    """
    keys = list(dict.fromkeys([*varying(groups), "system"]))
    names = headings(keys)
    found = []
    for key in keys:
        own = [group.labels.get(key, "") for group in groups]
        rank = ranks(own)
        values = sorted(rank, key=lambda value: rank[value])
        looks = system_looks(values) if key == "system" else [*map(look_in_order, range(len(values)))]
        found.append(
            {
                "heading": names[key].replace("_", " "),
                "values": [value or "-" for value in values],
                **_looks(looks),
                "places": [values.index(value) for value in own],
            }
        )
    return found


def colouring(groups: Sequence[Group]) -> dict[str, Any]:
    """The default colours of groups, as of lines in figures: by one axis or several together; see `axes`."""
    keys, panels = line_keys(groups) or ("system",), Panels(groups)
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
    """The colour, or a lighter one of its hue for a dark background."""
    red, green, blue = to_rgb(colour)
    if 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 > _DARK:
        return colour
    return to_hex((red + _LIGHTER * (1 - red), green + _LIGHTER * (1 - green), blue + _LIGHTER * (1 - blue)))
