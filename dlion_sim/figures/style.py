"""How every figure looks: made for one column of a two-column paper, and for readers who cannot tell red from green."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from dlion_sim.errors import InputError
from dlion_sim.results import Run

WIDTH, WIDE = 3.5, 7.16
"""Of a figure in one column and across both, in inches."""

BLUE = "#0072B2"
PALETTE = (BLUE, "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Okabe and Ito's colours, the ones that show best on white first."""
_SYSTEMS = (
    *("dlion", "ako", "gaia", "hop", "dpsgd", "adpsgd", "baseline", "parameter_server"),
    *("ring_allreduce", "local_sgd", "diloco"),
)
"""In the order of the looks, of which each has its own in every figure."""
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.2)), (0, (1, 1)), (0, (5, 1, 1, 1)))
"""Of lines, so that they can be told apart without colours too."""

HATCHES = (None, "/////", ".....")
"""Of bars whose colours have come round."""
BOUND_HATCH = "xxxxx"
"""Of what is only known to be more, or less."""

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
    return " · ".join(filter(None, [run.manifest.get("scenario"), run.system])) or run.folder.name


def worker_names(run: Run) -> dict[int, str]:
    """By number."""
    return dict(enumerate(run.manifest.get("workers", [])))


def time_label(run: Run, unit: str) -> str:
    """What a time axis of a run is labelled."""
    return f"{'Virtual time' if run.is_virtual else 'Time'} ({unit})"


def time_unit(end: float) -> tuple[float, str]:
    """In what to tell times up to `end` seconds: (seconds, name) of the unit."""
    return (60.0, "min") if end > _MINUTES_FROM else (1.0, "s")


def look_numbers(names: Sequence[str]) -> tuple[int, ...]:
    """The numbers of the looks of some lines or bars: systems have their own, others what is left."""
    # Of what is left, colours that are not in the figure come first.
    own = {name: _SYSTEMS.index(name) for name in names if name in _SYSTEMS}
    taken = {number % len(PALETTE) for number in own.values()}
    left = [number for number in range(len(_SYSTEMS) + len(PALETTE) + len(names)) if number not in own.values()]
    others = iter(sorted(left, key=lambda number: number % len(PALETTE) in taken))
    return tuple(own[name] if name in own else next(others) for name in names)


def bar_look(number: int) -> dict[str, Any]:
    """Colour and hatching of the bar of that number; no two of the first eight share a colour."""
    cycle, colour = divmod(number, len(PALETTE))
    return {"facecolor": PALETTE[colour], "hatch": HATCHES[cycle % len(HATCHES)], "edgecolor": "white", "linewidth": 0}


def line_look(number: int) -> dict[str, Any]:
    """Colour and dashes of the line of that number; no two of the first eight share a colour."""
    cycle, colour = divmod(number, len(PALETTE))
    return {"color": PALETTE[colour], "linestyle": DASHES[(colour + cycle) % len(DASHES)]}


def legend_below(figure: Figure, handles: Sequence[Any], names: Sequence[str], notes: Sequence[str] = ()) -> None:
    """One legend for all of the figure, in as many columns as fit, and above it what else there is to say."""
    if not names and not notes:
        return
    across = _LETTERS_ACROSS * figure.get_figwidth() / WIDTH
    widths = [len(name) + 5 for name in names]
    columns = max(1, len(names) if sum(widths) <= across else int(across / max(widths)))
    rows = -(-len(names) // columns) + len(notes)
    figure.set_figheight(figure.get_figheight() + _LEGEND_ROW * max(0, rows - _LEGEND_ROWS))
    above = "\n".join(notes) or None
    legend = figure.legend(handles, names, loc="outside lower center", ncols=columns, handlelength=2, title=above)
    legend.get_title().set(color="0.25", multialignment="center")


def of_seeds(what: str, counts: Sequence[int]) -> list[str]:
    """The note on a band or whiskers over some groups' seeds, e.g. "band: least to greatest of 3 seeds"."""
    several = [number for number in counts if number > 1]
    return [f"{what} of {span(several)} seeds"] if several else []


def span(counts: Sequence[int]) -> str:
    """E.g. "2 to 3"."""
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def say_nothing_there(axes: Axes, words: str) -> None:
    """Say in the middle of empty axes why they are."""
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color="0.45")


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
        for text in figure.findobj(Text):
            # To wrap a text, matplotlib reads formulas in it in any case.
            if isinstance(text, Text) and text.get_wrap():
                text.set(text=text.get_text().replace("$", r"\$"), parse_math=True)
        try:
            figure.savefig(file, metadata=metadata)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=file) from error
