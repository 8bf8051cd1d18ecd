"""A Parquet table that grows: rows in memory, then in small part files, finally in one file.

After a kill at any moment, all flushed rows are readable: parts are written atomically, and removed only after the
merged file is in place.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic

import pyarrow as pa
import pyarrow.parquet as pq

from dlion_sim.errors import InputError
from dlion_sim.files import opened
from dlion_sim.results.atomic import TEMPORARY, replacing
from dlion_sim.results.checking import conform
from dlion_sim.results.places import with_names
from dlion_sim.results.tables import R, Table

FLUSH_ROWS = 50_000
FLUSH_SECONDS = 10.0
_MOST_ROWS = 100_000_000
"""A damaged table may claim more than fits into any memory."""


@dataclass(frozen=True)
class Beginning:
    """The first `rows` rows of a table, in its first `parts` parts, or `merged`."""

    rows: int
    parts: int
    merged: pa.Table | None = None


class GrowingTable(Generic[R]):
    """The writing end of a `table` in a run folder; `manifest` has the names of participants. Raises OSError."""

    def __init__(self, folder: Path, table: Table[R], manifest: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._file = folder / table.file
        self._table = table
        self._manifest = manifest
        self._rows: list[R] = []
        self._parts = 0
        self._rows_in_parts = 0
        self._flushed = time.monotonic()
        if not table.optional:
            _parts_folder(self._file).mkdir(exist_ok=True)

    @classmethod
    def resume(
        cls, folder: Path, table: Table[R], manifest: Mapping[str, Any], beginning: Beginning
    ) -> GrowingTable[R]:
        """Continue the table after its `beginning`, see `find_beginning`; other rows are dropped.

        Can be repeated after a kill.
        """
        if beginning.merged is not None:
            _split(folder / table.file, beginning.merged)
        growing = cls(folder, table, manifest)
        for dropped in _parts(folder / table.file)[beginning.parts :]:
            dropped.unlink()
        growing._parts, growing._rows_in_parts = beginning.parts, beginning.rows
        return growing

    @property
    def rows(self) -> int:
        return self._rows_in_parts + len(self._rows)

    def append(self, row: R) -> None:
        """Add a row; flushes after many rows, or if the last flush is long ago."""
        self._rows.append(row)
        if len(self._rows) >= FLUSH_ROWS or time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the rows in memory to a new part file."""
        self._flushed = time.monotonic()
        if not self._rows:
            return
        columns = zip(*self._rows, strict=True)
        schema = self._table.schema
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        part = with_names(pa.table(arrays, schema=schema), self._manifest)
        _parts_folder(self._file).mkdir(exist_ok=True)
        _write(part, _part(self._file, self._parts + 1))
        # In one step: after an interrupt before it, the same part is written again, with these and later rows.
        self._rows, self._parts, self._rows_in_parts = [], self._parts + 1, self.rows

    def merge(self) -> None:
        """Turn all rows into one file. No row can be added afterwards."""
        self.flush()
        if self._table.optional and not self.rows:
            remove(self._file)
            return
        schema = with_names(self._table.schema.empty_table(), self._manifest).schema
        with (
            replacing(self._file) as merged,
            merged.open("wb") as content,
            pq.ParquetWriter(content, schema) as writer,
        ):
            for part in _parts(self._file):
                writer.write_table(with_names(_read_file(part, self._table.schema), self._manifest))
        shutil.rmtree(_parts_folder(self._file))


def read(file: Path, schema: pa.Schema) -> pa.Table:
    """The table of `file`, merged or in parts, with the columns of `schema`; missing nullable columns are null.

    Raises InputError for a table that does not exist, is not Parquet or lacks a column.
    """
    if not file.exists():
        try:
            so_far = _read_parts(file, schema)
        except InputError:
            if not file.exists():
                raise
        else:
            # If they have been merged meanwhile, some may have been gone when they were looked for.
            if not file.exists():
                return so_far
    return _read_file(file, schema)


def _read_parts(file: Path, schema: pa.Schema) -> pa.Table:
    if not _parts_folder(file).is_dir():
        raise InputError("is missing", file=file)
    return pa.concat_tables([schema.empty_table(), *(_read_file(part, schema) for part in _parts(file))])


def find_beginning(file: Path, schema: pa.Schema, rows: int) -> Beginning:
    """The first `rows` rows of the table of `file`, after which it can be continued.

    Raises InputError if there are fewer, or if no part ends with them.
    """
    folder = _parts_folder(file)
    if folder.is_symlink() or folder.is_file():
        raise InputError("is no folder", file=folder)
    if file.exists():
        if (whole := _read_file(file, schema)).num_rows < rows:
            raise InputError(f"has {whole.num_rows} rows, and not {rows}", file=file)
        return Beginning(rows, min(rows, 1), whole.slice(0, rows))
    ends = accumulate((_read_file(part, schema).num_rows for part in _parts(file)), initial=0)
    for parts, end in enumerate(ends):
        if end == rows:
            return Beginning(rows, parts)
    raise InputError(f"has no part that ends with row {rows}", file=folder)


def remove(file: Path) -> None:
    """Remove the table of `file`, merged or in parts. Raises OSError."""
    for stale in (file, file.with_name(file.name + TEMPORARY)):
        stale.unlink(missing_ok=True)
    if _parts_folder(file).is_dir():
        shutil.rmtree(_parts_folder(file))


def exists(file: Path) -> bool:
    """Whether there is a table of `file`, merged or in parts, or something else in its place."""
    return os.path.lexists(file) or _parts_folder(file).is_dir()


def _split(file: Path, first: pa.Table) -> None:
    """Turn the one file into a part of its first rows."""
    folder = _parts_folder(file)
    if folder.is_dir():
        shutil.rmtree(folder)
    folder.mkdir()
    if first.num_rows:
        _write(first, _part(file, 1))
    file.unlink()


def _write(table: pa.Table, file: Path) -> None:
    # Not by its name, which pyarrow takes for an address and which need not be text.
    with replacing(file) as part, part.open("wb") as content:
        pq.write_table(table, content)


def _part(file: Path, number: int) -> Path:
    return _parts_folder(file) / f"{number:05d}.parquet"


def _parts_folder(file: Path) -> Path:
    return file.with_suffix(".parts")


def _parts(file: Path) -> list[Path]:
    parts = (part for part in _parts_folder(file).glob("*.parquet") if re.fullmatch("[0-9]+", part.stem))
    return sorted(parts, key=lambda part: int(part.stem))


def _read_file(file: Path, schema: pa.Schema) -> pa.Table:
    # Not pq.read_table: it would take a folder named "lr=0.1" for a column.
    with opened(file) as content:
        try:
            with pq.ParquetFile(content) as parquet:
                if parquet.metadata.num_rows > _MOST_ROWS:
                    raise InputError(f"has {parquet.metadata.num_rows} rows", file=file, allowed=f"{_MOST_ROWS}")
                table = parquet.read()
                table.validate(full=True)
        # A damaged page is an OSError, and what claims too much a MemoryError.
        except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
            raise InputError(f"is not a whole Parquet file: {error}", file=file) from error
    return conform(table, schema, file)
