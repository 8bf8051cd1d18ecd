"""What systems come to while machines come and go: who was there, how accuracy went, what was computed in vain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from dlion_sim.analysis.availability import availability, goodput
from dlion_sim.analysis.curves import Band, mean_metric, of_groups, over_seeds
from dlion_sim.analysis.groups import Group, metric_name, metric_of
from dlion_sim.errors import InputError
from dlion_sim.figures.curves import draw_curve
from dlion_sim.figures.panels import Panels
from dlion_sim.figures.style import BANDS, WIDTH, drawing, legend_below, limit_scores, of_seeds, time_label, time_unit

_HEIGHTS = 0.7, 1.7
"""Of who is there, and of the metric (inches)."""
_BAR_HEIGHT = 0.16
_LOST = "0.75"


def plot_availability(groups: Sequence[Group], file: Path, band: Band = "range") -> Path:
    """Draw who was there over time, the metric over time, and samples a second, useful and lost, to `file`.

    Lines are means over seeds and bands their range, or the mean's 95 % interval; of who was there, a line for each
    seed. Returns `file`. Raises InputError where nobody could go in a run, groups differ in more than their systems, a
    run cannot be read, or the file cannot be written.
    """
    panels = Panels.of(groups)
    if len(panels.panels) > 1:
        raise InputError("are of several environments", file=groups[0].runs[0].folder.parent, allowed="runs of one")
    there = {
        run.manifest.get("seed", place): availability(run) for group in groups for place, run in enumerate(group.runs)
    }
    metric = metric_of(groups)
    curves = of_groups(groups, mean_metric, band)
    seconds, unit = time_unit(max(curve.index[-1] for curve in there.values()))
    with drawing(file, height=1.5 + sum(_HEIGHTS) + _BAR_HEIGHT * len(groups), width=WIDTH) as figure:
        heights = [*_HEIGHTS, 0.2 + _BAR_HEIGHT * len(groups)]
        count, scores, bars = figure.subplots(3, 1, height_ratios=heights)
        count.sharex(scores)
        count.set_title(panels.heading, wrap=True)
        count.set_ylabel("Workers")
        count.tick_params(labelbottom=False)
        for curve in there.values():
            count.step(curve.index / seconds, curve, where="post", color="0.35", linewidth=0.7)
        count.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
        count.set_ylim(0, len(groups[0].runs[0].manifest.get("workers", [])) + 1)
        handles = []
        for group, of_group in zip(groups, curves, strict=True):
            table = over_seeds(of_group, band) * metric.scale
            handles.append(draw_curve(scores, table.set_index(table.index / seconds), panels.look(group)))
        limit_scores(scores, metric)
        scores.set_ylabel(f"{metric_name(groups).capitalize()}{metric.axis}")
        scores.set_xlabel(time_label(groups[0].runs[0], unit))
        _draw_goodput(bars, groups, panels)
        names = [panels.names[panels.line(group)] for group in groups]
        notes = of_seeds(BANDS[band], [*map(len, curves)], groups)
        legend_below(figure, [*handles, Patch(color=_LOST)], [*names, "computed in vain"], notes)
    return file


def _draw_goodput(axes: Axes, groups: Sequence[Group], panels: Panels) -> None:
    """A bar for each group, as long as the samples it computed in a second."""
    for place, group in enumerate(groups):
        told = [goodput(run) for run in group.runs]
        useful, lost = (sum(part) / len(told) for part in zip(*told, strict=True))
        axes.barh(place, useful, height=0.7, **panels.look(group).bar())
        axes.barh(place, lost, left=useful, height=0.7, color=_LOST)
        share = useful / (useful + lost) if useful + lost else 0.0
        words = f"{100 * share:.1f} % useful"
        where = axes.get_yaxis_transform()  # beside the plot, whatever is in it
        axes.text(1.01, place, words, transform=where, va="center", size=5.5, color="0.25")
    axes.set_yticks(range(len(groups)), [panels.names[panels.line(group)] for group in groups])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("Samples a second, all workers")
