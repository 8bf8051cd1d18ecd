"""Checks of a table, which may come from anybody: its columns, and whether a run can have measured its values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dlion_sim.errors import InputError
from dlion_sim.results.tables import EVALUATIONS, Table


def conform(content: pa.Table, schema: pa.Schema, file: Path) -> pa.Table:
    """The schema's columns of a table, with its types; a nullable column that is missing is null.

    Raises InputError, which names the `file`, for a column that is missing, doubled, of another kind or has gaps.
    """
    columns = [_column(content, field, file) for field in schema]
    return pa.table(columns, schema=schema)


def checked(content: pa.Table, table: Table[Any], file: Path, workers: int | None, servers: int) -> pd.DataFrame:
    """The content of a `table` of a run with so many workers, None if unknown, and parameter servers, for pandas.

    Raises InputError, which names the `file`, for a value that cannot have been measured.
    """
    frame: pd.DataFrame = content.to_pandas()
    for name, column in table.columns.items():
        if name == "worker" and workers is not None:
            may_be_server = frame["kind"].isin(EVALUATIONS) if "kind" in frame else np.full(len(frame), True)
            _check_range(frame[name][~may_be_server], False, 0, workers - 1, file)
            _check_range(frame[name][may_be_server], False, 0, workers + servers - 1, file)
        elif column.least is not None:
            _check_range(frame[name], table.schema.field(name).nullable, column.least, column.most, file)
        if column.texts and not frame[name].isin(column.texts).all():
            raise InputError(
                "holds rows of another kind", file=file, path=name, allowed=", ".join(sorted(column.texts))
            )
    return frame


def _check_range(column: pd.Series, nullable: bool, least: float, most: float, file: Path) -> None:
    values = column.to_numpy()
    fits = (values >= least) & (values <= most)
    if nullable:
        fits |= np.isnan(values)
    if not fits.all():
        wrong = values[~fits][0]
        raise InputError(f"holds {wrong:g}", file=file, path=str(column.name), allowed=f"{least:g} to {most:g}")


def _column(table: pa.Table, field: pa.Field, file: Path) -> pa.ChunkedArray:
    places = table.schema.get_all_field_indices(field.name)
    if not places and field.nullable:
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    if len(places) != 1:
        problem = "is there twice" if places else "is missing"
        raise InputError(problem, file=file, path=field.name, allowed="one such column")
    column = table.column(places[0])
    if field.nullable and pa.types.is_null(column.type):
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    if column.type != field.type:
        if _family(column.type) != _family(field.type):
            raise InputError(f"is of the type {column.type}", file=file, path=field.name, allowed=str(field.type))
        try:
            column = column.cast(field.type)
        except pa.ArrowException as error:
            raise InputError(f"cannot be read: {error}", file=file, path=field.name) from None
    if column.null_count and not field.nullable:
        raise InputError("has gaps", file=file, path=field.name, allowed="a value in every row")
    return column


def _family(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "number"
    return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else str(kind)
