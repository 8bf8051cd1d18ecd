"""Reading traces of measured capacities from CSV files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dlion_sim.errors import did_you_mean
from dlion_sim.scenario.csv_file import csv_table
from dlion_sim.scenario.faults import RuleError, listed

if TYPE_CHECKING:
    import pandas as pd

_MOST_BYTES = 200_000_000
"""Of a file, which may have many series."""
TIME, SERIES = "time_s", "trace"
"""The columns of the time in seconds and, with several series, of the series' name."""


def read_trace(file: Path, *, series: str | None, value: str | None) -> list[tuple[float, float]]:
    """One series of samples as (time in seconds, from 0 on; value as it stands in the file).

    Args:
        file: CSV, perhaps compressed (.csv.gz), with a column `time_s`.
        series: Which series of the column `trace`; may be None if there is just one.
        value: The column of the values; may be None if only one is numeric.

    Raises:
        RuleError: The file cannot be read, has no such column or series, or holds no increasing times and numbers.
    """
    table = _read(file)
    if TIME not in table.columns:
        raise RuleError(f"trace {file} has no column '{TIME}'", allowed=listed(list(table.columns)))
    table = _one_series(table, file, series)
    times = _numbers(table, TIME, file)
    values = _numbers(table, value or _value_column(table, file), file)
    for line, step in times.diff().iloc[1:].items():
        if step <= 0:
            raise RuleError(f"trace {file}, line {line}: its times must increase")
    return [(time, number) for time, number in zip((times - times.iloc[0]).tolist(), values.tolist(), strict=True)]


def _read(file: Path) -> pd.DataFrame:
    """The table, indexed by line number."""
    if not file.is_file():
        raise RuleError(f"trace {file}: no such file")
    table = csv_table("trace", file, _MOST_BYTES, index_col=False)
    if table.empty:
        raise RuleError(f"trace {file} holds no samples")
    return table.set_axis(range(2, len(table) + 2), axis="index")


def _one_series(table: pd.DataFrame, file: Path, series: str | None) -> pd.DataFrame:
    if SERIES not in table.columns:
        if series is not None:
            raise RuleError(f"trace {file} has no column '{SERIES}' to pick the series '{series}' by")
        return table
    names = table[SERIES].astype(str)
    known = list(names.unique())
    if series is None and len(known) > 1:
        raise RuleError(f"trace {file} holds several series; name one as 'series'", allowed=listed(known))
    if series is not None and series not in known:
        raise RuleError(f"trace {file} has no series '{series}'{did_you_mean(series, known)}", allowed=listed(known))
    return table if series is None else table[names == series]


def _value_column(table: pd.DataFrame, file: Path) -> str:
    columns = table.drop(columns=[TIME, SERIES], errors="ignore")
    numeric = list(columns.select_dtypes("number").columns)
    if len(numeric) != 1:
        raise RuleError(
            f"trace {file} has {len(numeric)} numeric columns beside '{TIME}'; name the one to use as 'value'",
            allowed=listed(list(columns.columns)),
        )
    return str(numeric[0])


def _numbers(table: pd.DataFrame, column: str, file: Path) -> pd.Series[float]:
    import pandas as pd

    if column not in table.columns:
        raise RuleError(f"trace {file} has no column '{column}'", allowed=listed(list(table.columns)))
    numbers = pd.to_numeric(table[column], errors="coerce").astype(float)
    if numbers.isna().any():
        line = numbers.index[numbers.isna()][0]
        raise RuleError(f"trace {file}, line {line}: {column} is {table[column][line]!r}, not a number")
    return numbers
