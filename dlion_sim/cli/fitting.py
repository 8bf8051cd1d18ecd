"""Tables without truncated cells, for terminals of any width."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD, Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.table import Column, Table
from rich.text import Text

_PIPE_WIDTH = 10_000
_BEFORE_BRACKETS = re.compile(r" (?=[(\[])")


@dataclass(frozen=True)
class Fitted:
    """A table whose cells are broken between words only, numeric ones only before brackets.

    If it is too wide, less important columns are omitted; without `important`, each row becomes a paragraph.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    numbers: Collection[str] = ()
    """Headings of right-aligned columns."""
    bold: Collection[int] = ()
    """Numbers of bold rows."""
    names: int = 1
    """Number of leading columns that identify a row."""
    box: Box = SIMPLE_HEAD
    important: Sequence[str] = ()
    """Headings of columns that may be omitted, the most important first."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Text]:
        """The table, or paragraphs."""
        shown = [heading for heading in self.headings if heading not in self.important]
        for heading in self.important:
            more = [each for each in self.headings if each in shown or each == heading]
            if self._least_width(more) <= options.max_width:
                shown = more
        if self._least_width(shown) > options.max_width or (self.important and not {*shown} & {*self.important}):
            yield from self._paragraphs()
            return
        yield self._table(shown, options.max_width)
        if hidden := [" ".join(heading.split()) for heading in self.headings if heading not in shown]:
            yield Text(f"not shown in {options.max_width} columns: {', '.join(hidden)}")

    def _cells(self, heading: str) -> list[str]:
        place = [*self.headings].index(heading)
        return [row[place] for row in self.rows]

    def _least(self, heading: str) -> int:
        """Width of a column's longest part."""
        parts = [_longest(self._parts(heading, cell)) for cell in self._cells(heading)]
        return max(_longest(heading.split()), *parts)

    def _least_width(self, headings: Sequence[str]) -> int:
        return sum(map(self._least, headings)) + _frame(headings)

    def _table(self, headings: Sequence[str], most: int) -> Table:
        least = [*map(self._least, headings)]
        widths = [max(map(_width, (heading, *self._cells(heading)))) for heading in headings]
        while sum(widths) + _frame(headings) > most:
            widest = max(range(len(widths)), key=lambda place: (widths[place] > least[place], widths[place]))
            widths[widest] -= 1
        table = Table(title=self.title or None, title_justify="left", box=self.box)
        for heading, width in zip(headings, widths, strict=True):
            table.add_column(Text(heading), justify="right" if heading in self.numbers else "left", width=width)
        columns = [
            [Text(self._broken(heading, cell, width)) for cell in self._cells(heading)]
            for heading, width in zip(headings, widths, strict=True)
        ]
        for number, texts in enumerate(zip(*columns, strict=True)):
            table.add_row(*texts, style="bold" if number in self.bold else None)
        return table

    def _parts(self, heading: str, cell: str) -> list[str]:
        """Parts of a cell that are not broken."""
        return _BEFORE_BRACKETS.split(cell) if heading in self.numbers else cell.split()

    def _broken(self, heading: str, cell: str, width: int) -> str:
        """A numeric cell in as few lines as possible; rich breaks the others."""
        if heading not in self.numbers:
            return cell
        line, *rest = self._parts(heading, cell)
        lines = [line]
        for part in rest:
            longer = f"{lines[-1]} {part}"
            lines[-1:] = [longer] if cell_len(longer) <= width else [lines[-1], part]
        return "\n".join(lines)

    def _paragraphs(self) -> Iterator[Table | Text]:
        """Each row as a paragraph: its name, and a line for each non-empty cell."""
        if self.title:
            yield Text(f"{self.title}\n", style="italic")
        for row in self.rows:
            yield Text(", ".join(filter(None, row[: self.names])), style="bold")
            lines = Table.grid("", Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2))
            for heading, cell in zip(self.headings[self.names :], row[self.names :], strict=True):
                if cell:
                    lines.add_row("", " ".join(heading.split()), Text(cell))
            yield lines


def wide_console() -> Console:
    """A console on standard output: as wide as the terminal, or unlimited for a pipe or file."""
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH)


def _frame(headings: Sequence[str]) -> int:
    return 3 * len(headings) + 1


def _longest(parts: Sequence[str]) -> int:
    return max(map(cell_len, parts), default=1)


def _width(cell: str) -> int:
    return max(map(cell_len, cell.splitlines()), default=1)
