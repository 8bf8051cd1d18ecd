"""A Parquet table that grows: rows in memory, then small part files, at last one file.

Killed at any moment, all that was flushed stays readable: a part is there whole or not at all, and the parts go only
once the merged file is in place.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dlion_sim.errors import InputError
from dlion_sim.results.atomic import TEMPORARY, replacing

FLUSH_ROWS = 50_000
FLUSH_SECONDS = 10.0

Complete = Callable[[pa.Table], pa.Table]


class GrowingTable:
    """The writing end of the table that will stand in `file`. Raises OSError where that cannot be written.

    Rows have the columns of `schema`; `complete` adds those that follow from them.
    """

    def __init__(self, file: Path, schema: pa.Schema, complete: Complete = lambda table: table) -> None:
        self._file = file
        self._schema = schema
        self._complete = complete
        self._rows: list[tuple[Any, ...]] = []
        self._parts = 0
        self._rows_in_parts = 0
        self._flushed = time.monotonic()
        _parts_folder(file).mkdir(exist_ok=True)

    @classmethod
    def resume(cls, file: Path, schema: pa.Schema, rows: int, complete: Complete = lambda table: table) -> GrowingTable:
        """Go on with the table in `file` after its first `rows` rows, with which a part ends; the others are dropped.

        Killed on the way, it can be done again. `check_can_resume` tells whether there are such parts.
        """
        if file.is_file():
            _split(file, rows)
        table = cls(file, schema, complete)
        for part in _parts(file):
            if table._rows_in_parts == rows:
                part.unlink()
            else:
                table._parts += 1
                table._rows_in_parts += _rows_of(part)
        return table

    @property
    def rows(self) -> int:
        """How many there are."""
        return self._rows_in_parts + len(self._rows)

    def append(self, row: tuple[Any, ...]) -> None:
        """Add a row, one value a column; flushes when many have gathered or the last flush is long ago."""
        self._rows.append(row)
        if len(self._rows) >= FLUSH_ROWS or time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the rows gathered so far to a new part file."""
        self._flushed = time.monotonic()
        if not self._rows:
            return
        columns = zip(*self._rows, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
        with replacing(_part(self._file, self._parts + 1)) as part:
            pq.write_table(self._complete(pa.table(arrays, schema=self._schema)), part)
        # In one step: an interrupt before it has the same part written again, with these rows and those to come.
        self._rows, self._parts, self._rows_in_parts = [], self._parts + 1, self.rows

    def merge(self) -> None:
        """Turn all rows into the one file. No row can be added afterwards."""
        self.flush()
        schema = self._complete(self._schema.empty_table()).schema
        with replacing(self._file) as merged, pq.ParquetWriter(merged, schema) as writer:
            for part in _parts(self._file):
                writer.write_table(_read_file(part))
        shutil.rmtree(_parts_folder(self._file))


def read(file: Path, schema: pa.Schema) -> pa.Table:
    """The table of `file`: merged, or else its parts so far. Columns of `schema` that it has not are null.

    Raises InputError where there is neither, or where a file isn't Parquet.
    """
    if file.is_file():
        return _with_columns(_read_file(file), schema)
    if not _parts_folder(file).is_dir():
        raise InputError("is missing", file=file)
    parts = pa.concat_tables(list(map(_read_file, _parts(file))) or [schema.empty_table()])
    return _with_columns(parts, schema)


def check_can_resume(file: Path, rows: int) -> None:
    """Raise InputError, with nothing changed, unless the table of `file` can go on after its first `rows` rows."""
    if file.is_file():
        if (whole := len(_read_file(file))) < rows:
            raise InputError(f"has {whole} rows, and not {rows}", file=file)
    elif rows not in accumulate(map(_rows_of, _parts(file)), initial=0):
        raise InputError(f"has no part that ends with row {rows}", file=_parts_folder(file))


def remove(file: Path) -> None:
    """Remove the table of `file`, merged or in parts. Raises OSError."""
    for stale in (file, file.with_name(file.name + TEMPORARY)):
        stale.unlink(missing_ok=True)
    if _parts_folder(file).is_dir():
        shutil.rmtree(_parts_folder(file))


def exists(file: Path) -> bool:
    """Whether there is a table of `file`, merged or in parts."""
    return file.is_file() or _parts_folder(file).is_dir()


def _with_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for field in schema:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    return table


def _split(file: Path, rows: int) -> None:
    """Turn the one file into a part of its first rows."""
    folder = _parts_folder(file)
    if folder.is_dir():
        shutil.rmtree(folder)
    folder.mkdir()
    if rows:
        with replacing(_part(file, 1)) as part:
            pq.write_table(_read_file(file).slice(0, rows), part)
    file.unlink()


def _part(file: Path, number: int) -> Path:
    return _parts_folder(file) / f"{number:05d}.parquet"


def _parts_folder(file: Path) -> Path:
    return file.with_suffix(".parts")


def _parts(file: Path) -> list[Path]:
    return sorted(_parts_folder(file).glob("[0-9]*.parquet"), key=lambda part: int(part.stem))


def _rows_of(file: Path) -> int:
    with _opened(file) as parquet:
        rows: int = parquet.metadata.num_rows
        return rows


def _read_file(file: Path) -> pa.Table:
    with _opened(file) as parquet:
        return parquet.read()


@contextmanager
def _opened(file: Path) -> Iterator[pq.ParquetFile]:
    # Not pq.read_table: it would take a folder named "lr=0.1" for a column.
    try:
        with pq.ParquetFile(file) as parquet:
            yield parquet
    except pa.ArrowInvalid as error:
        raise InputError("is not a whole Parquet file", file=file) from error
