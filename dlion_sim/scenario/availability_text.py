"""Lines, tables and JSON of published files, read with size limits; errors name the line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dlion_sim.errors import InputError, did_you_mean
from dlion_sim.files import read_unpacked
from dlion_sim.scenario.faults import RuleError, listed
from dlion_sim.scenario.units import DURATION

MOST_MACHINES = 10_000
_MOST_BYTES = 20_000_000


def table(file: Path, where: Mapping[str, object], *columns: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells of each selected row of a CSV table. Raises RuleError if it cannot be read."""
    reader = csv.DictReader(_lines(file))
    found = False
    try:
        for column in (*columns, *where):
            if column not in (known := reader.fieldnames or ()):
                raise RuleError(
                    f"trace {file} has no column '{column}'{did_you_mean(column, known)}", allowed=listed(known)
                )
        for row in reader:
            if all(row[column] == str(value) for column, value in where.items()):
                found = True
                yield reader.line_num, row
    except csv.Error as error:
        raise fault(file, reader.line_num, str(error)) from None
    if not found:
        raise RuleError(f"trace {file} has no rows" + (f" where {dict(where)}" if where else ""))


def rows(file: Path, *columns: str, separator: str | None = ",") -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row without comments. Raises RuleError if it cannot be read."""
    empty = True
    for number, line in enumerate(_lines(file), start=1):
        if not line.strip() or line.lstrip()[0] in "#%":
            continue
        cells = [cell.strip() for cell in line.split(separator)]
        if len(cells) != len(columns):
            raise fault(
                file, number, f"{line[:60]!r} does not have {len(columns)} cells", (separator or " ").join(columns)
            )
        empty = False
        yield number, cells
    if empty:
        raise RuleError(f"trace {file} is empty")


def time_of(file: Path, line: int, text: str | None, unit: str, least: float = 0.0) -> float:
    """The time in a cell, in seconds, at least `least`. Raises RuleError."""
    try:
        time = DURATION.parse(f"{text} {unit}")
    except ValueError:
        raise fault(file, line, f"{text!r} is not a time", f"a number of {unit}") from None
    if time < least:
        raise fault(file, line, f"{DURATION.format(time)} comes after {DURATION.format(least)}", "times in order")
    return time


def count_of(file: Path, line: int | None, given: object) -> int:
    """The number of machines in a cell. Raises RuleError."""
    whole = int(str(given)) if str(given).isdecimal() and len(str(given)) < 10 else -1
    if not 0 <= whole <= MOST_MACHINES:
        raise fault(file, line, f"{given!r} is not a count", f"0 to {MOST_MACHINES}")
    return whole


def json_of(file: Path) -> Any:
    """The content of a JSON file. Raises RuleError if it cannot be read."""
    try:
        return json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise RuleError(f"trace {file} is not JSON: {error}") from None


def _lines(file: Path) -> Iterable[str]:
    return _text(file).splitlines()


def _text(file: Path) -> str:
    try:
        return read_unpacked(file, _MOST_BYTES).decode()
    except InputError as error:
        raise RuleError(f"trace {file} {error.problem}", allowed=error.allowed) from None
    except UnicodeDecodeError as error:
        raise RuleError(f"trace {file} cannot be read: {error}") from None


def fault(file: Path, line: int | None, problem: str, allowed: str | None = None) -> RuleError:
    """The error for that line of the file."""
    place = f", line {line}" if line else ""
    return RuleError(f"trace {file}{place}: {problem}", allowed=allowed)
