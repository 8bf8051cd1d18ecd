"""The style of all figures: for one column of a two-column paper, and with colours for red-green blindness."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, ScalarFormatter

from dlion_sim.analysis.curves import Band, Progress
from dlion_sim.analysis.groups import Group
from dlion_sim.analysis.outages import Interval, clipped
from dlion_sim.errors import InputError
from dlion_sim.figures.svg import compact
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.results import Run, note, scenario_label, traffic_of
from dlion_sim.results.numbers import byte_unit, number

WIDTH, WIDE = 3.5, 7.16
"""The width of a figure in one column and across both, in inches."""

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Okabe and Ito's colours, in order of contrast on white: of workers, spans and environments, not of systems."""
BANDS: Mapping[Band, str] = {"range": "band: minimum to maximum", "interval": "band: 95 % interval of the mean"}
"""Notes on bands over seeds."""
DECADE = 10
"""Values that span more may have a logarithmic axis."""
BOUND_HATCH = "xxxxx"
"""The hatching of bounds."""

_OUTAGE: dict[str, Any] = {"color": "0.86", "linewidth": 0, "zorder": 0}
_MINUTES_FROM = 20 * 60.0
_LETTERS_ACROSS = 66
"""Letters of a legend in the width of one column."""
_LEGEND_ROWS, _LEGEND_ROW = 2, 0.13
"""The legend's rows that fit in a figure, and the height of each further one in inches."""

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 7.5,
    "text.parse_math": False,  # names may hold dollar signs
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
    "pdf.fonttype": 42,  # publishers refuse the default, Type 3
    "svg.hashsalt": "dlion",
}

# Without the time or version, so that the same figure gives the same bytes.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def title(run: Run) -> str:
    """The title of a figure of one run."""
    name = " · ".join(filter(None, [scenario_label(run.manifest), run.system])) or run.folder.name
    noted = note([run])
    return f"{name} ({noted})" if noted else name


def time_label(run: Run, unit: str) -> str:
    """The label of a run's time axis."""
    return f"{'Virtual time' if run.is_virtual else 'Time'} ({unit})"


def time_unit(end: float) -> tuple[float, str]:
    """The unit for times up to `end` seconds: (seconds, name)."""
    return (60.0, "min") if end > _MINUTES_FROM else (1.0, "s")


def progress_unit(progress: Progress, end: float, runs: Sequence[Run]) -> tuple[float, str, str]:
    """The unit of an axis of progress up to `end`, its size and name, empty without one, and the axis's title."""
    match progress:
        case "time":
            return *time_unit(end), "Virtual time" if all(run.is_virtual for run in runs) else "Time"
        case "bytes" | "wan_bytes":
            return *byte_unit(end), traffic_of(runs).title
        case "iterations":
            return 1.0, "", "Iterations (mean of the workers)"
        case "epochs":
            return 1.0, "", "Epochs (samples of all workers / training samples)"
        case "cost":
            return 1.0, "", "Cost"


def legend_below(figure: Figure, handles: Sequence[Any], names: Sequence[str], notes: Sequence[str] = ()) -> None:
    """Add a legend below the figure, in as many columns as fit, with notes above it."""
    if not names and not notes:
        return
    across = int(_LETTERS_ACROSS * figure.get_figwidth() / WIDTH)
    notes = [line for note in notes for line in wrap(note, across)]
    widths = [len(name) + 5 for name in names]
    columns = max(1, len(names) if sum(widths) <= across else int(across / max(widths)))
    rows = -(-len(names) // columns)
    columns = -(-len(names) // max(rows, 1)) or 1  # no more than the rows need
    rows += len(notes)
    figure.set_figheight(figure.get_figheight() + _LEGEND_ROW * max(0, rows - _LEGEND_ROWS))
    above = "\n".join(notes) or None
    legend = figure.legend(handles, names, loc="outside lower center", ncols=columns, handlelength=2, title=above)
    legend.get_title().set(color="0.25", multialignment="center")


def of_seeds(what: str, counts: Sequence[int], groups: Sequence[Group] = ()) -> list[str]:
    """The note on a band or whiskers over so many runs of each group, e.g. "band: minimum to maximum of 3 seeds"."""
    several = [number for number in counts if number > 1]
    repeated = any(len({run.manifest.get("seed") for run in group.runs}) < len(group.runs) for group in groups)
    return [f"{what} of {span(several)} {'runs' if repeated else 'seeds'}"] if several else []


def span(counts: Sequence[int]) -> str:
    """E.g. "2 to 3"."""
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def limit_scores(axes: Axes, metric: Metric) -> None:
    """Set the axis of accuracies to 0 to 100 %; others are scaled to their values."""
    if metric == ACCURACY:
        axes.set_ylim(0, 100)


def write_empty(axes: Axes, words: str) -> None:
    """Write in the middle of empty axes why they are empty."""
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color="0.45")


def shade(panels: Iterable[Axes], outages: Sequence[Interval], end: float, unit: float = 1.0) -> dict[str, Patch]:
    """Shade outages (s) up to `end` (s) in all panels, whose time axis is in units of `unit` seconds.

    Returns the legend's entries by name; none if nothing was shaded.
    """
    shown = [*clipped(outages, -math.inf, end)]
    for axes in panels if shown else ():
        for begin, back in shown:
            axes.axvspan(begin / unit, back / unit, **_OUTAGE)
    return _outage_legend(shown)


def shade_rows(
    axes: Axes, outages: Sequence[tuple[float, Interval]], height: float, begin: float, end: float
) -> dict[str, Patch]:
    """Shade outages (s) from `begin` to `end` (s), each with the top of its row of that height; see `shade`."""
    shown = [(top, each) for top, outage in outages for each in clipped([outage], begin, end)]
    for top, (since, until) in shown:
        axes.broken_barh([(since, until - since)], (top, height), **_OUTAGE)
    return _outage_legend(shown)


def _outage_legend(shown: Sequence[object]) -> dict[str, Patch]:
    return {"down": Patch(color=_OUTAGE["color"])} if shown else {}


@contextmanager
def drawing(file: Path, *, height: float, width: float = WIDTH) -> Iterator[Figure]:
    """A figure of that size in inches in this style, saved to `file` when the block ends.

    The same content gives the same bytes. Raises InputError if `file` is no .png, .svg or .pdf, or can't be written.
    """
    metadata = _METADATA.get(file.suffix)
    if metadata is None:
        raise InputError("is no supported picture format", file=file, allowed=", ".join(_METADATA))
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height))
        yield figure
        _write_plain_numbers(figure)
        for text in figure.findobj(Text):
            # Wrapped text is parsed for formulas in any case.
            if isinstance(text, Text) and text.get_wrap():
                text.set(text=text.get_text().replace("$", r"\$"), parse_math=True)
        try:
            figure.savefig(file, metadata=metadata)
            if file.suffix == ".svg":
                file.write_text(compact(file.read_text()))
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=file) from error


def make_logarithmic(
    axes: Axes, which: Literal["x", "y"], span: float, written: Callable[[float], str] = number
) -> None:
    """Make an axis logarithmic whose largest value is `span` times the smallest one; `written` formats its ticks."""
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(subs=(1,) if span > DECADE**2 else (1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: written(value)))
    axis.set_minor_locator(NullLocator())


def _write_plain_numbers(figure: Figure) -> None:
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), ScalarFormatter):
                axis.set_major_formatter(_PlainNumbers())


class _PlainNumbers(ScalarFormatter):
    """Ticks with thousands separators, without exponents and offsets."""

    def __init__(self) -> None:
        super().__init__(useOffset=False)
        self.set_scientific(False)

    def __call__(self, x: float, pos: int | None = None) -> str:
        whole, point, decimals = super().__call__(x, pos).partition(".")
        return re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", whole) + point + decimals
