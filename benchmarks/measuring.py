"""Shared parts of benchmarks: options, tables, pages, and ratios of two programs that alternate."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rich.table import Table


def options(about: str | None, *, repeat: int | None = None, page: bool = False) -> ArgumentParser:
    """The options of a benchmark, with the description `about`; --repeat if it has a default, --output for a `page`."""
    parser = ArgumentParser(description=about, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="only show that it works; the figures mean nothing")
    if repeat is not None:
        parser.add_argument("--repeat", type=int, default=repeat)
    if page:
        parser.add_argument("--output", type=Path, help="folder for the page README.md")
    return parser


def table(title: str, *columns: str, names: int = 1, caption: str | None = None) -> Table:
    """A table with left-aligned `names` in the first columns."""
    made = Table(title=title, caption=caption)
    for number, column in enumerate(columns):
        made.add_column(column, justify="left" if number < names else "right", overflow="fold")
    return made


def write_page(
    folder: Path, title: str, paragraphs: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Write README.md with a title, text and a table into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join([f"# {title}", *paragraphs, markdown(columns, rows)])
    (folder / "README.md").write_text(f"{text}\n")


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, ["---"] * len(columns), *rows))


def ratio(reference: Sequence[float], ours: Sequence[float]) -> str:
    """How many times as fast ours is: the median over the turns, the minimum and the maximum."""
    ratios = [a / b for a, b in zip(reference, ours, strict=True)]
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
