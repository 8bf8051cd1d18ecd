"""Maps of senders and receivers: a cell a link, in the order of the workers, who stand by micro-cloud."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from dlion_sim.figures.style import WIDE, drawing, legend_below

_NAMES = 16
"""Workers that are named one by one; of more, micro-clouds are."""
_CLOUD_NAMES = 32
"""Micro-clouds that are all named."""
_MAPS = {
    "full": ("Fullest NIC or path crossed (%)", 100.0),
    "rate": ("Mean rate (Mbps)", 1e-6),
    "n_percent": ("N of Max-N, mean (%)", 1.0),
}
"""By column the heading of its map, and what its values are multiplied by."""
_NO_LINK = "0.93"


def draw_link_map(heading: str, links: pd.DataFrame, names: dict[int, str], notes: Sequence[str], file: Path) -> Path:
    """Draw a map of each column that is known of `links` to `file`, and return `file`.

    `links` has a row a link: `sender`, `receiver`, `full` (fraction), `rate` (bps) and `n_percent`.
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
            highest = max(100.0, np.nanmax(cells)) if column == "full" else np.nanmax(cells)
            image = axes.imshow(cells, cmap="cividis", vmin=0, vmax=highest, aspect="auto", interpolation="nearest")
            figure.colorbar(image, location="bottom", aspect=30, pad=0.02, ticks=MaxNLocator(nbins=5))
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


def _height(rows: int, columns: int, maps: int) -> float:
    """In inches, with which cells are about square."""
    return 1.6 + min(max(WIDE / maps * 0.8 * rows / columns, 0.6), 5.0)


def _name(axes: Axes, side: str, names: Sequence[str]) -> None:
    """Write the workers' names at an axis, or their clouds', with a line between clouds."""
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
