"""Results under churn: available workers and the metric over time, and goodput."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from dlion_sim.analysis.curves import Band, availability, goodput, mean_metric, of_groups, over_seeds
from dlion_sim.analysis.groups import Group, metric_label, metric_of
from dlion_sim.errors import InputError
from dlion_sim.figures.curves import draw_curve
from dlion_sim.figures.panels import Panels
from dlion_sim.figures.style import BANDS, WIDTH, drawing, legend_below, limit_scores, of_seeds, time_label, time_unit

_HEIGHTS = 0.7, 1.7
"""Of the panels of workers and of the metric (inches)."""
_BAR_HEIGHT = 0.16
_LOST = "0.75"


def plot_availability(groups: Sequence[Group], file: Path, band: Band = "range") -> Path:
    """Draw the available workers over time, the metric over time, and useful and lost samples per second, to `file`.

    Lines of the metric are means over seeds, with bands as in `plot_accuracies`; available workers have a line for each
    seed. Returns `file`. Raises InputError for a scenario without `availability`, for groups that differ in more than
    their systems, and if a file cannot be read or written.
    """
    panels = Panels(groups)
    if len(panels.panels) > 1:
        raise InputError("are of several environments", file=groups[0].runs[0].folder.parent, allowed="runs of one")
    available = {
        run.manifest.get("seed", place): availability(run) for group in groups for place, run in enumerate(group.runs)
    }
    metric = metric_of(groups)
    curves = of_groups(groups, mean_metric, band)
    seconds, unit = time_unit(max(curve.index[-1] for curve in available.values()))
    with drawing(file, height=1.5 + sum(_HEIGHTS) + _BAR_HEIGHT * len(groups), width=WIDTH) as figure:
        heights = [*_HEIGHTS, 0.2 + _BAR_HEIGHT * len(groups)]
        count, scores, bars = figure.subplots(3, 1, height_ratios=heights)
        count.sharex(scores)
        count.set_title(panels.heading, wrap=True)
        count.set_ylabel("Workers")
        count.tick_params(labelbottom=False)
        for curve in available.values():
            count.step(curve.index / seconds, curve, where="post", color="0.35", linewidth=0.7)
        count.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
        count.set_ylim(0, len(groups[0].runs[0].manifest.get("workers", [])) + 1)
        handles = []
        for group, of_group in zip(groups, curves, strict=True):
            table = over_seeds(of_group, band) * metric.scale
            handles.append(draw_curve(scores, table.set_index(table.index / seconds), panels.look(group)))
        limit_scores(scores, metric)
        scores.set_ylabel(metric_label(groups))
        scores.set_xlabel(time_label(groups[0].runs[0], unit))
        _draw_goodput(bars, groups, panels)
        names = [panels.names[panels.line(group)] for group in groups]
        notes = of_seeds(BANDS[band], [*map(len, curves)], groups)
        legend_below(figure, [*handles, Patch(color=_LOST)], [*names, "lost"], notes)
    return file


def _draw_goodput(axes: Axes, groups: Sequence[Group], panels: Panels) -> None:
    """A bar for each group: its samples per second."""
    for place, group in enumerate(groups):
        rates = [goodput(run) for run in group.runs]
        useful, lost = (sum(part) / len(rates) for part in zip(*rates, strict=True))
        axes.barh(place, useful, height=0.7, **panels.look(group).bar())
        axes.barh(place, lost, left=useful, height=0.7, color=_LOST)
        share = useful / (useful + lost) if useful + lost else 0.0
        beside = axes.get_yaxis_transform()
        axes.text(1.01, place, f"{100 * share:.1f} % useful", transform=beside, va="center", size=5.5, color="0.25")
    axes.set_yticks(range(len(groups)), [panels.names[panels.line(group)] for group in groups])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("Samples per second, all workers")
