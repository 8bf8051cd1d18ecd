"""Maps of senders and receivers: a cell for each link, in the order of the workers, by micro-cloud."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import LogLocator, MaxNLocator

from dlion_sim.figures.style import WIDE, drawing, legend_below
from dlion_sim.results.numbers import number

_NAMES = 16
"""The most workers with names; of more, micro-clouds are named."""
_CLOUD_NAMES = 32
"""The most micro-clouds with all names."""
_MAPS = {
    "full": ("Utilization of the fullest NIC or path (%)", 100.0),
    "rate": ("Mean rate (Mbps)", 1e-6),
    "n_percent": ("N of Max-N, mean (%)", 1.0),
}
"""By column the heading of its map, and the factor of its values."""
_LINEAR, _LOGARITHMIC, _ROOM = MaxNLocator(nbins=4), LogLocator(subs=(1, 2, 5)), 0.13
"""Ticks of the colour scale, and the part beside its ends without ticks."""
_NO_LINK = "0.93"
_LEAST_SPAN, _LOGARITHMIC_FROM = 0.1, 4.0
"""Of colours: the least span as a share of the largest value, and the ratio of the largest to the smallest value from
which on the scale is logarithmic."""


def draw_link_map(heading: str, links: pd.DataFrame, names: dict[int, str], notes: Sequence[str], file: Path) -> Path:
    """Draw a map of each known column of `links` to `file`, and return `file`.

    `links` has a row for each link: `sender`, `receiver`, `full` (fraction), `rate` (bps) and `n_percent`. Colours span
    the values, whose extremes are noted.
    """
    maps = [column for column in _MAPS if links[column].notna().any()]
    rows, columns = (sorted(links[side].unique()) for side in ("sender", "receiver"))
    with drawing(file, height=_height(len(rows), len(columns), len(maps)), width=WIDE) as figure:
        figure.suptitle(heading, x=0.01, ha="left", size=8.5)
        for axes, column in zip(figure.subplots(1, len(maps), sharey=True, squeeze=False)[0], maps, strict=True):
            label, factor = _MAPS[column]
            cells = np.full((len(rows), len(columns)), np.nan)
            places = np.searchsorted(rows, links["sender"]), np.searchsorted(columns, links["receiver"])
            cells[places] = factor * links[column]
            low, high, is_wide = _span(cells)
            norm = (LogNorm if is_wide else Normalize)(low, high)
            image = axes.imshow(cells, cmap="cividis", norm=norm, aspect="auto", interpolation="nearest")
            scale = figure.colorbar(image, location="bottom", aspect=30, pad=0.02)
            inner = (_LOGARITHMIC if is_wide else _LINEAR).tick_values(low, high)
            ticks = [low, *(float(value) for value in inner if _ROOM < norm(value) < 1 - _ROOM), high]
            scale.set_ticks(ticks, labels=[number(value) for value in ticks])
            scale.minorticks_off()
            notes = [*notes, _extremes(label, cells, [names[each] for each in rows], [names[each] for each in columns])]
            axes.set_facecolor(_NO_LINK)
            axes.set_title(label, size=7.5)
            axes.set_xlabel("to")
            _name(axes, "x", [names[number] for number in columns])
            _name(axes, "y", [names[number] for number in rows])
            axes.grid(visible=False)
            axes.tick_params(length=0)
        figure.axes[0].set_ylabel("from")
        legend_below(figure, [], [], notes)
    return file


def _span(cells: np.ndarray) -> tuple[float, float, bool]:
    """The range of the colour scale, and whether it is logarithmic."""
    least, greatest = float(np.nanmin(cells)), float(np.nanmax(cells))
    if greatest > _LOGARITHMIC_FROM * least > 0:
        return least, greatest, True
    return min(least, (1 - _LEAST_SPAN) * greatest), greatest or 1.0, False


def _extremes(label: str, cells: np.ndarray, senders: Sequence[str], receivers: Sequence[str]) -> str:
    """The least and the greatest value, with their links."""
    texts = []
    for place in (np.nanargmin(cells), np.nanargmax(cells)):
        row, column = divmod(int(place), len(receivers))
        texts.append(f"{number(float(cells[row, column]))} ({senders[row]} to {receivers[column]})")
    return f"{label}: {' to '.join(texts)}"


def _height(rows: int, columns: int, maps: int) -> float:
    """In inches, for about square cells."""
    return 1.6 + min(max(WIDE / maps * 0.8 * rows / columns, 0.6), 5.0)


def _name(axes: Axes, side: str, names: Sequence[str]) -> None:
    """Label an axis with the workers' names, or their clouds', with a line between clouds."""
    clouds = [name.rsplit("/", 1)[0] for name in names]
    begins = [place for place, cloud in enumerate(clouds) if not place or cloud != clouds[place - 1]]
    along, line = (axes.xaxis, axes.axvline) if side == "x" else (axes.yaxis, axes.axhline)
    if len(names) <= _NAMES:
        along.set_ticks(range(len(names)), names)
    else:
        middles = [(begin + end - 1) / 2 for begin, end in zip(begins, [*begins[1:], len(names)], strict=True)]
        every = -(-len(begins) // _CLOUD_NAMES)
        along.set_ticks(middles[::every], [clouds[begin] for begin in begins[::every]])
    if side == "x":
        axes.tick_params(axis="x", labelrotation=90)
    if len(begins) < len(names):
        for begin in begins[1:]:
            line(begin - 0.5, color="white", linewidth=0.6)
