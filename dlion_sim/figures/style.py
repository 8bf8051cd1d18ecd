"""How every figure looks: made for one column of a two-column paper, and for readers who cannot tell red from green."""

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

from dlion_sim.analysis.curves import Band
from dlion_sim.analysis.groups import Group
from dlion_sim.analysis.outages import Interval, within
from dlion_sim.errors import InputError
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.results import Run, note, scenario_label
from dlion_sim.results.numbers import number

WIDTH, WIDE = 3.5, 7.16
"""Of a figure in one column and across both, in inches."""

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Okabe and Ito's colours, the ones that show best on white first: of workers, spans, environments, but no system."""
BANDS: Mapping[Band, str] = {"range": "band: least to greatest", "interval": "band: 95 % interval of the mean"}
"""What bands over seeds show."""
DECADE = 10
"""What spans more than that may want a logarithmic axis."""
BOUND_HATCH = "xxxxx"
"""Of what is only known to be more, or less."""

_OUTAGE: dict[str, Any] = {"color": "0.86", "linewidth": 0, "zorder": 0}
_MINUTES_FROM = 20 * 60.0
_LETTERS_ACROSS = 66
"""Of a legend, in the width of one column."""
_LEGEND_ROWS, _LEGEND_ROW = 2, 0.13
"""Of a legend: the rows for which a figure has room, and what each further one takes in inches."""

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

# Without these, a file would hold the time or the version that drew it, and differ at every drawing.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def title(run: Run) -> str:
    """What a figure of one run is headed."""
    name = " · ".join(filter(None, [scenario_label(run.manifest), run.system])) or run.folder.name
    noted = note([run])
    return f"{name} ({noted})" if noted else name


def worker_names(run: Run) -> dict[int, str]:
    """By number."""
    return dict(enumerate(run.manifest.get("workers", [])))


def by_cloud(workers: Iterable[int], names: Mapping[int, str]) -> dict[str, list[int]]:
    """Workers by micro-cloud, which is called by its name and how many it has: "east (3)"."""
    clouds: dict[str, list[int]] = {}
    for worker in workers:
        clouds.setdefault(names.get(worker, str(worker)).rsplit("/", 1)[0], []).append(worker)
    return {f"{cloud} ({len(own)})": own for cloud, own in clouds.items()}


def time_label(run: Run, unit: str) -> str:
    """What a time axis of a run is labelled."""
    return f"{'Virtual time' if run.is_virtual else 'Time'} ({unit})"


def time_unit(end: float) -> tuple[float, str]:
    """In what to tell times up to `end` seconds: (seconds, name) of the unit."""
    return (60.0, "min") if end > _MINUTES_FROM else (1.0, "s")


def legend_below(figure: Figure, handles: Sequence[Any], names: Sequence[str], notes: Sequence[str] = ()) -> None:
    """One legend for all of the figure, in as many columns as fit, and above it what else there is to say."""
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
    """The note on a band or whiskers over so many runs of each group, e.g. "band: least to greatest of 3 seeds"."""
    several = [number for number in counts if number > 1]
    repeated = any(len({run.manifest.get("seed") for run in group.runs}) < len(group.runs) for group in groups)
    return [f"{what} of {span(several)} {'runs' if repeated else 'seeds'}"] if several else []


def span(counts: Sequence[int]) -> str:
    """E.g. "2 to 3"."""
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def limit_scores(axes: Axes, metric: Metric) -> None:
    """Have accuracies in percent be drawn on a scale of all; others on as much as there is."""
    if metric == ACCURACY:
        axes.set_ylim(0, 100)


def say_nothing_there(axes: Axes, words: str) -> None:
    """Say in the middle of empty axes why they are."""
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color="0.45")


def shade(panels: Iterable[Axes], outages: Sequence[Interval], end: float, unit: float = 1.0) -> dict[str, Patch]:
    """Shade outages (s) up to `end` (s) in all panels, whose time axis is in units of `unit` seconds.

    Returns the legend's entries by name; none if nothing was shaded.
    """
    shown = [*within(outages, -math.inf, end)]
    for axes in panels if shown else ():
        for begin, back in shown:
            axes.axvspan(begin / unit, back / unit, **_OUTAGE)
    return _outage_legend(shown)


def shade_rows(
    axes: Axes, outages: Sequence[tuple[float, Interval]], height: float, begin: float, end: float
) -> dict[str, Patch]:
    """Shade outages (s) from `begin` to `end` (s), each with the top of its row of that height; see `shade`."""
    shown = [(top, each) for top, outage in outages for each in within([outage], begin, end)]
    for top, (since, until) in shown:
        axes.broken_barh([(since, until - since)], (top, height), **_OUTAGE)
    return _outage_legend(shown)


def _outage_legend(shown: Sequence[object]) -> dict[str, Patch]:
    return {"down": Patch(color=_OUTAGE["color"])} if shown else {}


@contextmanager
def drawing(file: Path, *, height: float, width: float = WIDTH) -> Iterator[Figure]:
    """A figure of that size in inches in this style, saved to `file` when the block ends.

    The same content gives the same bytes. Raises InputError where `file` is no .png, .svg or .pdf, or can't be written.
    """
    metadata = _METADATA.get(file.suffix)
    if metadata is None:
        raise InputError("is no kind of picture known here", file=file, allowed=", ".join(_METADATA))
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height))
        yield figure
        _write_plain_numbers(figure)
        for text in figure.findobj(Text):
            # To wrap a text, matplotlib reads formulas in it in any case.
            if isinstance(text, Text) and text.get_wrap():
                text.set(text=text.get_text().replace("$", r"\$"), parse_math=True)
        try:
            figure.savefig(file, metadata=metadata)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=file) from error


def make_logarithmic(
    axes: Axes, which: Literal["x", "y"], span: float, written: Callable[[float], str] = number
) -> None:
    """Make an axis logarithmic, on which the largest value is `span` times the smallest one; ticks are `written`."""
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
    """Ticks with thousands apart, without exponents and offsets."""

    def __init__(self) -> None:
        super().__init__(useOffset=False)
        self.set_scientific(False)

    def __call__(self, x: float, pos: int | None = None) -> str:
        whole, point, decimals = super().__call__(x, pos).partition(".")
        return re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", whole) + point + decimals
