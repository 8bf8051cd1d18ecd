"""Figure of each worker's time by kind, as stacked bars."""

from __future__ import annotations

from pathlib import Path

from matplotlib.patches import Patch

from dlion_sim.analysis.stalls.attribution import KINDS, Stalls
from dlion_sim.figures.style import PALETTE, drawing, legend_below, title
from dlion_sim.results import participants

LOOKS = {
    "compute": (PALETTE[0], "computing"),
    "prep": (PALETTE[7], "samples: preparing"),
    "fetch": (PALETTE[3], "samples: reading"),
    "profile": (PALETTE[6], "profiling"),
    "interconnect": (PALETTE[5], "messages within a cloud"),
    "network": (PALETTE[1], "messages between clouds"),
    "straggler": (PALETTE[4], "others computing"),
    "queue": (PALETTE[2], "own sending"),
    "churn": ("0.45", "machines away"),
    "other": ("0.8", "other"),
}
_MOST_WORKERS = 40
"""More are drawn as the means of their micro-clouds."""
_BAR, _AROUND = 0.16, 0.9
"""Inches of a bar, and around the bars."""
_LEAST = 5e-4
"""Kinds with less of every worker's time are left out."""


def plot_stalls(stalls: Stalls, file: Path) -> Path:
    """Draw the shares of each worker's time to `file`, and return `file`.

    Of more than 40 workers, the means of their micro-clouds. Raises InputError if the file cannot be written.
    """
    shares = 100 * stalls.shares
    shares.index = [participants(stalls.run.manifest)[worker] for worker in shares.index]
    if len(shares) > _MOST_WORKERS:
        shares = shares.groupby([name.rpartition("/")[0] for name in shares.index], sort=False).mean()
    kinds = [kind for kind in KINDS if shares[kind].max() > 100 * _LEAST]
    with drawing(file, height=_AROUND + _BAR * len(shares)) as figure:
        axes = figure.subplots()
        axes.set_title(title(stalls.run), wrap=True)
        left = 0 * shares.sum(axis=1)
        for kind in kinds:
            axes.barh(range(len(shares)), shares[kind], left=left, color=LOOKS[kind][0], height=0.75)
            left = left + shares[kind]
        axes.set_yticks(range(len(shares)), [*shares.index])
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.set_xlabel("Time (%)")
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        legend_below(figure, [Patch(color=LOOKS[kind][0]) for kind in kinds], [LOOKS[kind][1] for kind in kinds])
    return file
