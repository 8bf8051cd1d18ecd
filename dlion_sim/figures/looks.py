"""What stands for whom in every figure: a system's colour, dashes, marker and hatching, whoever else is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from matplotlib.colors import to_hex, to_rgb

from dlion_sim.figures.style import PALETTE

DASHES: tuple[Any, ...] = ("-", (0, (4, 1.2)), (0, (1, 1)), (0, (5, 1, 1, 1)))
"""Of lines, so that they can be told apart without colours too."""

_HATCHES = (None, "/////", ".....", "\\\\\\\\\\", "|||||", "-----", "+++++", "ooo")
_MARKERS = "osD^vPX<>hdp*"
_MARKER_EVERY = 0.16
"""Of the diagonal of the axes, along a line."""
_OTHERS, _SHADES = PALETTE[:6], (-0.35, 0.0, 0.35)
"""The colours of systems without a name, and how far these are moved towards black (negative) or white."""


@dataclass(frozen=True)
class Look:
    """How a line or a bar is drawn."""

    colour: str
    dashes: Any = "-"
    hatch: str | None = None
    marker: str = ""
    filled: bool = True
    """Whether the marker is."""
    marker_at: float = 0.0
    """Where on the line its first marker is, as part of the axes' diagonal."""

    def line(self) -> dict[str, Any]:
        """Matplotlib's keywords of a line."""
        line = {"color": self.colour, "linestyle": self.dashes}
        if not self.marker:
            return line
        return line | {
            "marker": self.marker,
            "markersize": 3.2,
            "markerfacecolor": self.colour if self.filled else "white",
            "markeredgewidth": 0.7,
            "markevery": (self.marker_at, _MARKER_EVERY),
        }

    def point(self) -> dict[str, Any]:
        """Matplotlib's keywords of a point by itself."""
        return {
            "color": self.colour,
            "linestyle": "",
            "marker": self.marker or "o",
            "markersize": 4,
            "markerfacecolor": self.colour if self.filled else "white",
        }

    def bar(self) -> dict[str, Any]:
        """Matplotlib's keywords of a bar."""
        return {"facecolor": self.colour, "hatch": self.hatch, "edgecolor": "white", "linewidth": 0}


# Petroff's ten, which readers of all kinds of colour vision tell apart (arXiv:2107.02270), black and the colour that
# is furthest from all these: one each.
_COLOURS: Mapping[str, str] = {
    "dlion": "#3f90da",
    "ako": "#ffa90e",
    "gaia": "#bd1f01",
    "hop": "#832db6",
    "dpsgd": "#a96b59",
    "adpsgd": "#e76300",
    "baseline": "#000000",
    "parameter_server": "#717581",
    "ring_allreduce": "#b9ac70",
    "local_sgd": "#94a4a2",
    "diloco": "#92dadd",
    "sparta": "#2d004b",
    "dlion_sparse": "#690000",
}
_SYSTEMS: Mapping[str, Look] = {
    system: Look(
        colour,
        DASHES[place % len(DASHES)],
        marker=_MARKERS[place],
        marker_at=_MARKER_EVERY * place / len(_COLOURS),
    )
    for place, (system, colour) in enumerate(_COLOURS.items())
}


def is_named(label: str) -> bool:
    """Whether a system's label tells of a named one, and is not one of a study's own."""
    return label.split(",")[0] in _SYSTEMS


def system_look(label: str) -> Look:
    """The look of a system, which follows from its label alone.

    A named system has its own. One with something replaced ("baseline, exchange gossip:Gossip") has that system's
    marker, but hollow; its colour, dashes and hatching follow from the whole label, as all do of other systems.
    """
    if label in _SYSTEMS:
        return _SYSTEMS[label]
    colour, shade, dashes, hatch, marker, begin = blake2b(label.encode(), digest_size=6).digest()
    own = _SYSTEMS.get(label.split(",")[0])
    return Look(
        colour=_shaded(_OTHERS[colour % len(_OTHERS)], _SHADES[shade % len(_SHADES)]),
        dashes=DASHES[1 + dashes % (len(DASHES) - 1)],
        hatch=_HATCHES[1 + hatch % (len(_HATCHES) - 1)],
        marker=own.marker if own else _MARKERS[marker % len(_MARKERS)],
        filled=own is None,
        marker_at=_MARKER_EVERY * begin / 256,
    )


def look_in_order(number: int) -> Look:
    """That of the worker, environment or run of that number; no two of the first 56 are alike."""
    cycle, colour = divmod(number, len(PALETTE))
    return Look(PALETTE[colour], DASHES[(colour + cycle) % len(DASHES)], _HATCHES[cycle % (len(_HATCHES) - 1)])


def _shaded(colour: str, towards: float) -> str:
    end = 1.0 if towards > 0 else 0.0
    red, green, blue = (part + abs(towards) * (end - part) for part in to_rgb(colour))
    return to_hex((red, green, blue))
