"""Tables of which nothing is cut off, however narrow the terminal is."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD, Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.table import Column, Table
from rich.text import Text

_BEFORE_BRACKETS = re.compile(r" (?=[(\[])")


@dataclass(frozen=True)
class Fitted:
    """A table whose columns break between words only, those of numbers only before brackets.

    Where that is too wide, a paragraph a row.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    numbers: Collection[str] = ()
    """The headings of columns that are aligned to the right."""
    bold: Collection[int] = ()
    """The numbers of rows that stand out."""
    names: int = 1
    """How many of the first columns say what a row is of."""
    box: Box = SIMPLE_HEAD

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Text]:
        """The table, or else the paragraphs."""
        columns = [[heading, *cells] for heading, *cells in zip(self.headings, *self.rows, strict=True)]
        least = [
            max(_longest(heading.split()), *(_longest(self._parts(heading, cell)) for cell in cells))
            for heading, *cells in columns
        ]
        widths = [max(map(_width, column)) for column in columns]
        frame = 3 * len(columns) + 1
        if sum(least) + frame > options.max_width:
            yield from self._paragraphs()
            return
        while sum(widths) + frame > options.max_width:
            most = max(range(len(widths)), key=lambda number: (widths[number] > least[number], widths[number]))
            widths[most] -= 1
        table = Table(title=self.title or None, title_justify="left", box=self.box)
        for heading, width in zip(self.headings, widths, strict=True):
            table.add_column(Text(heading), justify="right" if heading in self.numbers else "left", width=width)
        for number, row in enumerate(self.rows):
            cells = zip(self.headings, widths, row, strict=True)
            texts = [Text(self._broken(heading, cell, width)) for heading, width, cell in cells]
            table.add_row(*texts, style="bold" if number in self.bold else None)
        yield table

    def _parts(self, heading: str, cell: str) -> list[str]:
        """What of a cell stays on one line."""
        return _BEFORE_BRACKETS.split(cell) if heading in self.numbers else cell.split()

    def _broken(self, heading: str, cell: str, width: int) -> str:
        """A number's cell in as few lines as fit; rich breaks the others."""
        if heading not in self.numbers:
            return cell
        line, *rest = self._parts(heading, cell)
        lines = [line]
        for part in rest:
            longer = f"{lines[-1]} {part}"
            lines[-1:] = [longer] if cell_len(longer) <= width else [lines[-1], part]
        return "\n".join(lines)

    def _paragraphs(self) -> Iterator[Table | Text]:
        """What a row is of, and below it a line for each other cell that says something."""
        if self.title:
            yield Text(f"{self.title}\n", style="italic")
        for row in self.rows:
            yield Text(", ".join(filter(None, row[: self.names])), style="bold")
            lines = Table.grid("", Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2))
            for heading, cell in zip(self.headings[self.names :], row[self.names :], strict=True):
                if cell:
                    lines.add_row("", " ".join(heading.split()), Text(cell))
            yield lines


def _longest(parts: Sequence[str]) -> int:
    return max(map(cell_len, parts), default=1)


def _width(cell: str) -> int:
    return max(map(cell_len, cell.splitlines()), default=1)
