"""Looks of lines and bars: a system has the same colour, dashes, marker and hatching in every figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from dlion_sim.figures.style import PALETTE

DASHES: tuple[Any, ...] = ("-", (0, (4, 1.2)), (0, (1, 1)), (0, (5, 1, 1, 1)))
"""Dashes of lines, to distinguish them without colours."""
OWN_DASHES: tuple[Any, ...] = ((0, (8, 1.5)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 1.5, 1, 1.5)))
"""Dashes of systems without a name only."""

_HATCHES = (None, "/////", "///|||", "\\\\\\\\\\", "|||||", "-----", "+++++", "\\\\\\---")
"""Of lines: a dot takes 300 bytes of SVG."""
_MARKERS = "osD^vPX<>hdp*"
_MARKER_EVERY = 0.16
"""The distance of markers along a line, as a share of the axes' diagonal."""
_OWN_COLOURS = ("#d25ab4", "#5a960f", "#87005a", "#00c3d2", "#a55aff", "#0f0096")
"""Colours of systems without a name."""
_OWN_MARKERS = "+x1234|_"
"""Markers of systems that are not made from a named one."""
_OWN_SLOTS = len(_OWN_COLOURS) * len(OWN_DASHES)


@dataclass(frozen=True)
class Look:
    """The look of a line or a bar."""

    colour: str
    dashes: Any = "-"
    hatch: str | None = None
    marker: str = ""
    filled: bool = True
    """Whether the marker is filled."""
    marker_at: float = 0.0
    """The position of the first marker on the line, as a share of the axes' diagonal."""

    def line(self) -> dict[str, Any]:
        """Matplotlib's keywords of a line."""
        line = {"color": self.colour, "linestyle": self.dashes}
        if not self.marker:
            return line
        return line | {
            "marker": self.marker,
            "markersize": 6.5 if self.marker in _OWN_MARKERS else 3.2,  # strokes have to stand out from the line
            "markerfacecolor": self.colour if self.filled else "white",
            "markeredgewidth": 1.2 if self.marker in _OWN_MARKERS else 0.7,
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


# Nine of Petroff's ten, which are distinct for all kinds of colour vision (arXiv:2107.02270), black, and colours that
# are far from all these.
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
    "diloco": "#1e692d",
    "sparta": "#2d004b",
    "dlion_sparse": "#690000",
    "gossipgrad": "#884466",
    "sgp": "#554488",
    "noloco": "#8899ff",
    "moshpit": "#ccaaff",
    "streaming_diloco": "#2200ff",
    "async_local_sgd": "#6666cc",
    "sparse_loco": "#333333",
    "halos": "#550066",
    "decoupled_diloco": "#224466",
    "demo": "#9955aa",
    "power_sgd": "#aacc66",
    "fedavg": "#001122",
}
_SYSTEMS: Mapping[str, Look] = {
    system: Look(
        colour,
        DASHES[place % len(DASHES)],
        marker=_MARKERS[place % len(_MARKERS)],
        marker_at=_MARKER_EVERY * place / len(_COLOURS),
    )
    for place, (system, colour) in enumerate(_COLOURS.items())
}


def system_look(label: str) -> Look:
    """The look of a single system; see `system_looks`."""
    return system_looks([label])[0]


def system_looks(labels: Sequence[str]) -> list[Look]:
    """The looks of the systems of one figure, by their labels.

    A named system has its own look. Others have colours and dashes that no named system has, derived from their labels;
    on a collision, one takes the next free look. A named system with a replaced choice ("baseline, exchange
    gossip:Gossip") has that system's marker, but hollow.
    """
    looks = {label: _SYSTEMS[label] for label in labels if label in _SYSTEMS}
    taken: Counter[Any] = Counter()
    for label in sorted({*labels} - looks.keys()):
        first = int.from_bytes(blake2b(label.encode(), digest_size=4).digest())
        choices = [_own_look(label, first + step, taken) for step in range(_OWN_SLOTS)]
        looks[label] = min(choices, key=lambda look: [taken[each] for each in _shared(look)])
        taken.update(_shared(looks[label]))
    return [looks[label] for label in labels]


def _own_look(label: str, number: int, taken: Counter[Any]) -> Look:
    slot = number % _OWN_SLOTS
    cycle, place = divmod(slot, len(_OWN_COLOURS))
    colour, dashes = _OWN_COLOURS[place], OWN_DASHES[(cycle + place) % len(OWN_DASHES)]
    own = _SYSTEMS.get(label.split(",")[0])
    return Look(
        colour=colour,
        dashes=dashes,
        hatch=_HATCHES[1 + slot % (len(_HATCHES) - 1)],
        marker=own.marker if own else _OWN_MARKERS[(slot + taken[colour, dashes]) % len(_OWN_MARKERS)],
        filled=own is None,
        marker_at=_MARKER_EVERY * slot / _OWN_SLOTS,
    )


def _shared(look: Look) -> list[Any]:
    """What two looks should not share, the most important first."""
    return [look.colour, (look.colour, look.dashes), (look.dashes, look.marker), look]


def look_in_order(number: int) -> Look:
    """The look of the worker, environment or run of that number; the first 56 are distinct."""
    cycle, colour = divmod(number, len(PALETTE))
    return Look(PALETTE[colour], DASHES[(colour + cycle) % len(DASHES)], _HATCHES[cycle % (len(_HATCHES) - 1)])
