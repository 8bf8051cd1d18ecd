"""Bands of the times at which somebody, or a path, was down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from dlion_sim.analysis.outages import Interval

_LOOK: dict[str, Any] = {"color": "0.86", "linewidth": 0, "zorder": 0}


def shade(panels: Iterable[Axes], outages: Sequence[Interval], end: float, unit: float = 1.0) -> dict[str, Patch]:
    """Shade outages (s) up to `end` (s), over all of the panels, whose axis of time is in so many seconds.

    Returns what to say of that in a legend, by name; nothing where there is no band.
    """
    shown = [(begin, min(back, end)) for begin, back in outages if begin < end]
    for axes in panels if shown else ():
        for begin, back in shown:
            axes.axvspan(begin / unit, back / unit, **_LOOK)
    return _told(shown)


def shade_rows(
    axes: Axes, outages: Sequence[tuple[float, Interval]], height: float, begin: float, end: float
) -> dict[str, Patch]:
    """Shade outages (s) from `begin` to `end` (s), each in the row of that height whose top comes with it."""
    shown = [(top, (max(gone, begin), min(back, end))) for top, (gone, back) in outages if gone < end and back > begin]
    for top, (gone, back) in shown:
        axes.broken_barh([(gone, back - gone)], (top, height), **_LOOK)
    return _told(shown)


def _told(shown: Sequence[object]) -> dict[str, Patch]:
    return {"down": Patch(color=_LOOK["color"])} if shown else {}
