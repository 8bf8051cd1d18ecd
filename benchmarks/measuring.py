"""Shared parts of benchmarks: options, tables, and ratios of two programs that alternate."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from statistics import median

from rich.table import Table


def options(about: str | None, *, repeat: int | None = None) -> ArgumentParser:
    """The options of a benchmark, with the description `about`; and --repeat if it has a default."""
    parser = ArgumentParser(description=about, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="only show that it works; the figures mean nothing")
    if repeat is not None:
        parser.add_argument("--repeat", type=int, default=repeat)
    return parser


def table(title: str, *columns: str, names: int = 1, caption: str | None = None) -> Table:
    """A table with left-aligned `names` in the first columns."""
    made = Table(title=title, caption=caption)
    for number, column in enumerate(columns):
        made.add_column(column, justify="left" if number < names else "right", overflow="fold")
    return made


def ratio(reference: Sequence[float], ours: Sequence[float]) -> str:
    """How many times as fast ours is: the median over the turns, the minimum and the maximum."""
    ratios = [a / b for a, b in zip(reference, ours, strict=True)]
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
