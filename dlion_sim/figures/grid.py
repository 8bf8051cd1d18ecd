"""Panels side by side and below each other, all of one scale."""

from __future__ import annotations

from itertools import zip_longest

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlion_sim.figures.panels import Panels


def rows_of(panels: Panels, columns: int) -> int:
    """How many rows the panels take."""
    return -(-len(panels.panels) // columns)


class Grid:
    """A figure's panels, each with its title; only the outermost have labels."""

    def __init__(self, figure: Figure, panels: Panels, columns: int) -> None:
        self._columns = columns
        self._all = figure.subplots(rows_of(panels, columns), columns, sharex=True, sharey=True, squeeze=False)
        self.axes: list[Axes] = list(self._all.flat[: len(panels.panels)])
        """Those of each panel."""
        for axes, name in zip_longest(self._all.flat, panels.panels):
            if name is None:
                axes.set_visible(False)
            else:
                axes.set_title(", ".join(filter(None, [panels.heading, name])), wrap=True)

    def label(self, x: str, y: str) -> None:
        """Say what the axes are, at the left, and below the lowest panel of each column."""
        for axes in self._all[:, 0]:
            axes.set_ylabel(y)
        for axes in self.axes[-self._columns :]:
            axes.set_xlabel(x)
            axes.tick_params(labelbottom=True)
