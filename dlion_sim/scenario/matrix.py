"""Matrices of bandwidths and round-trip times between micro-clouds: written out, or read from measurements."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BeforeValidator, ValidationInfo

from dlion_sim.errors import InputError
from dlion_sim.files import read_bytes
from dlion_sim.scenario.capacity import UNLIMITED, PathBandwidth
from dlion_sim.scenario.csv_file import csv_table
from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.network import FULL_FRAME, SEGMENT
from dlion_sim.scenario.schedule import Schedule
from dlion_sim.scenario.units import BANDWIDTH, DURATION, Duration, Unit

if TYPE_CHECKING:
    import pandas as pd

_MOST_BYTES = 32_000_000
"""Of a file."""
_TO = "-to-"
"""Separates the two clouds in the name of an iperf3 result file."""
FRAME = FULL_FRAME / SEGMENT
"""Bytes on the link for each byte that iperf3 counts: TCP segments over IPv4 and Ethernet."""

Cell = TypeVar("Cell")
Measured = dict[str, dict[str, Schedule | str]]
"""Bandwidth, or "unlimited", by sending and receiving cloud."""
Rtts = dict[str, dict[str, str]]
"""Round-trip times by both clouds, as a scenario has them: "60 ms"."""


class MatrixFile(Model):
    """A file of bandwidths or round-trip times; cells beside these keys override the file's."""

    file: str
    """CSV file."""
    unit: str | None = None
    """Unit of its numbers, e.g. Mbps, unless the file has it."""


def read_bandwidths(path: Path, unit: str | None = None) -> Measured:
    """The bandwidths in a CSV file, or in a folder of iperf3 results.

    A CSV file has a row for each sending cloud and a column for each receiving one, with headers. Cells are bandwidths,
    or numbers in `unit` or the unit at the end of the first cell. The diagonal is ignored; for an empty cell or "-",
    the scenario's other settings apply.

    Each result is a file SENDER-to-RECEIVER.json, written by `iperf3 -J`. iperf3 counts received bytes without headers;
    the path's bandwidth includes the headers.

    Raises:
        RuleError: A file cannot be read, or has something else; of a CSV file with its line and column.
    """
    return _results(path, _received) if path.is_dir() else _cells(path, unit, BANDWIDTH, _bandwidth)


def read_rtts(path: Path, unit: str | None = None) -> Rtts:
    """Like `read_bandwidths`, for round-trip times; of iperf3, the minimum that the sending kernel measured.

    Larger ones include queues that the test itself filled. Only Linux senders report them.
    """
    return _results(path, _round_trip) if path.is_dir() else _cells(path, unit, DURATION, _duration)


def _cells(
    file: Path, unit: str | None, quantity: Unit, read: Callable[[str, str | None, str], Cell]
) -> dict[str, dict[str, Cell]]:
    table = _grid(file)
    corner, *receivers = (cell.strip() for cell in table.iloc[0])
    named = corner.split()[-1].strip("()[]") if corner else ""
    unit = unit or (named if named in quantity.factors else None)
    measured: dict[str, dict[str, Cell]] = {}
    for line, (sender, *cells) in enumerate(table.iloc[1:].itertuples(index=False, name=None), start=2):
        row: dict[str, Cell] = {}
        for receiver, cell in zip(receivers, map(str.strip, cells), strict=True):
            if receiver != sender.strip() and cell not in ("", "-"):
                where = f"matrix {file}, line {line} (from '{sender.strip()}'), column '{receiver}'"
                if receiver in row:
                    raise RuleError(f"{where}: the column exists twice")
                row[receiver] = read(cell, unit, where)
        if sender.strip() in measured:
            raise RuleError(f"matrix {file}, line {line}: a row from '{sender.strip()}' exists already")
        if sender.strip():
            measured[sender.strip()] = row
    return measured


def _results(folder: Path, read: Callable[[dict[str, Any], Path], Cell]) -> dict[str, dict[str, Cell]]:
    files = sorted(folder.glob("*.json"))
    if not files:
        raise RuleError(f"matrix {folder}: the folder has no iperf3 results", allowed=f"SENDER{_TO}RECEIVER.json")
    measured: dict[str, dict[str, Cell]] = {}
    for file in files:
        sender, *receivers = file.stem.split(_TO)
        if len(receivers) != 1:
            raise RuleError(
                f"matrix {file}: the file name does not have the sender and the receiver", allowed=f"A{_TO}B.json"
            )
        measured.setdefault(sender, {})[receivers[0]] = read(_result(file), file)
    return measured


def _result(file: Path) -> dict[str, Any]:
    try:
        result = json.loads(read_bytes(file, _MOST_BYTES))
    except InputError as error:
        raise RuleError(f"matrix {file} {error.problem}", allowed=error.allowed) from None
    except (ValueError, RecursionError) as error:
        raise RuleError(f"matrix {file} is not readable JSON: {error}") from None
    if isinstance(result, dict) and "error" in result:
        raise RuleError(f"matrix {file}: iperf3 failed: {result['error']}")
    return result if isinstance(result, dict) else {}


def _received(result: dict[str, Any], file: Path) -> Schedule | str:
    try:
        protocol = result["start"]["test_start"]["protocol"]
        rate = float(result["end"]["sum_received"]["bits_per_second"])
    except (KeyError, TypeError, ValueError, OverflowError):
        problem = f"matrix {file} has no end.sum_received.bits_per_second"
        raise RuleError(problem, allowed="what iperf3 -J wrote") from None
    if protocol != "TCP":
        raise RuleError(f"matrix {file} is of {protocol}", allowed="TCP, iperf3's default")
    return _bandwidth(f"{rate * FRAME!r}", "bps", f"matrix {file}")


def _round_trip(result: dict[str, Any], file: Path) -> str:
    try:
        least = min(float(stream["sender"]["min_rtt"]) for stream in result["end"]["streams"])
    except (KeyError, TypeError, ValueError, OverflowError):
        problem = f"matrix {file} has no end.streams.sender.min_rtt"
        raise RuleError(problem, allowed="what iperf3 -J wrote on Linux") from None
    return _duration(f"{least!r}", "us", f"matrix {file}")


def _quantity(quantity: Unit, written: str, unit: str | None, where: str) -> float:
    try:
        float(written)
    except ValueError:
        text = written
    else:
        if unit is None:
            raise RuleError(
                f"{where}: {written} has no unit; write it there, in the first cell, or as {{file: ..., unit: ...}}",
                allowed=", ".join(quantity.factors),
            )
        text = f"{written} {unit}"
    try:
        return quantity.parse(text)
    except ValueError as error:
        raise RuleError(f"{where}: {error}") from None


def _bandwidth(written: str, unit: str | None, where: str) -> Schedule | str:
    if written == UNLIMITED:
        return UNLIMITED
    value = _quantity(BANDWIDTH, written, unit, where)
    try:
        return Schedule.constant(value)
    except ValueError as error:
        raise RuleError(f"{where}: {error}") from None


def _duration(written: str, unit: str | None, where: str) -> str:
    return DURATION.format(_quantity(DURATION, written, unit, where))


def _grid(file: Path) -> pd.DataFrame:
    """All cells, as text."""
    as_text: dict[str, Any] = {"dtype": str, "keep_default_na": False}  # a cloud may be called NA
    table = csv_table("matrix", file, _MOST_BYTES, header=None, encoding="utf-8-sig", skip_blank_lines=False, **as_text)
    return table.fillna("")


def _read(
    given: object,
    info: ValidationInfo,
    *,
    quantity: Unit,
    read: Callable[[Path, str | None], Mapping[str, Any]],
) -> object:
    """The content of a file or folder in place of its name."""
    unit: str | None = None
    beside: dict[str, Mapping[str, Any]] = {}
    if isinstance(given, Mapping) and isinstance(given.get("file"), str):
        beside = {sender: row for sender, row in given.items() if isinstance(row, Mapping)}
        written = MatrixFile.model_validate({key: given[key] for key in given.keys() - beside.keys()})
        given, unit = written.file, written.unit
        if unit is not None and unit not in quantity.factors:
            units = ", ".join(quantity.factors)
            raise RuleError(f"'{unit}' is not a unit of a {quantity.quantity}", allowed=units, at=("unit",))
    if not isinstance(given, str):
        return given
    path = Path((info.context or {}).get("folder", "")) / given
    if not path.exists():
        raise RuleError(f"matrix {path}: no such file or folder")
    measured = read(path, unit)
    return {sender: {**measured.get(sender, {}), **beside.get(sender, {})} for sender in [*measured, *beside]}


BandwidthMatrix = Annotated[
    dict[str, dict[str, PathBandwidth]],
    BeforeValidator(
        partial(_read, quantity=BANDWIDTH, read=read_bandwidths),
        json_schema_input_type=str | MatrixFile | dict[str, dict[str, Any]],
    ),
]
"""Bandwidth by sending and receiving cloud."""

RttMatrix = Annotated[
    dict[str, dict[str, Duration]],
    BeforeValidator(
        partial(_read, quantity=DURATION, read=read_rtts),
        json_schema_input_type=str | MatrixFile | dict[str, dict[str, Any]],
    ),
]
"""Round-trip time (s) by both clouds."""
