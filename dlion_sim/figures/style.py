"""How every figure looks: made for one column of a two-column paper, and for readers who cannot tell red from green."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from dlion_sim.errors import InputError

WIDTH = 3.5
"""Of a figure, in inches."""

BLUE = "#0072B2"
PALETTE = (BLUE, "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Okabe and Ito's colours, the ones that show best on white first."""

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 7.5,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 7,
    "axes.labelcolor": "0.25",
    "axes.edgecolor": "0.45",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "xtick.color": "0.45",
    "ytick.color": "0.45",
    "xtick.labelcolor": "0.25",
    "ytick.labelcolor": "0.25",
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.4,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 6.5,
    "legend.title_fontsize": 6.5,
    "legend.handlelength": 1.2,
    "legend.handletextpad": 0.5,
    "legend.labelspacing": 0.25,
    "legend.columnspacing": 0.8,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 300,
    "svg.hashsalt": "dlion",
}

# Without these, a file would hold the time or the version that drew it, and differ at every drawing.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@contextmanager
def drawing(file: Path, *, height: float) -> Iterator[Figure]:
    """A figure of `height` inches in this style, saved to `file` when the block ends.

    The same content gives the same bytes. Raises InputError where `file` is no .png, .svg or .pdf, or can't be written.
    """
    metadata = _METADATA.get(file.suffix)
    if metadata is None:
        raise InputError("is no kind of picture known here", file=file, allowed=", ".join(_METADATA))
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(WIDTH, height))
        yield figure
        try:
            figure.savefig(file, metadata=metadata)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=file) from error
