"""Whether a table that may come from anybody holds what a run can have measured."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pyarrow as pa

from dlion_sim.errors import InputError
from dlion_sim.results.json_document import MOST
from dlion_sim.results.tables import Kind, What

_INDEX_MOST = 2**31 - 1
_RANGES = {
    "virtual_time": (0.0, MOST),
    "wall_time": (0.0, MOST),
    "worker": (0, _INDEX_MOST),
    "iteration": (0, MOST),
    "accuracy": (0.0, 1.0),
    "batch_size": (0, MOST),
    "global_batch_size": (0, MOST),
    "staleness": (-MOST, MOST),  # of updates from ahead, negative
    "applied": (0, MOST),
    "merged": (0, MOST),
    "compute_seconds": (0.0, MOST),
    "wait_seconds": (0.0, MOST),
    "prep_seconds": (0.0, MOST),
    "fetch_seconds": (0.0, MOST),
    "waited_for": (0, _INDEX_MOST),
    "begin": (0.0, MOST),
    "end": (0.0, MOST),
    "sender": (0, _INDEX_MOST),
    "receiver": (0, _INDEX_MOST),
    "bytes": (0, MOST),
    "messages": (0, MOST),
    "gradients": (0, MOST),
    "n_percent": (0.0, 100.0),
    "lost_bytes": (0, MOST),
    "resent_bytes": (0, MOST),
    "saved_bytes": (0, MOST),
    "delivered": (0.0, MOST),
    "variable": (0, _INDEX_MOST),
    "seconds": (0.0, MOST),
    "participant": (0, _INDEX_MOST),
    "incarnation": (0, _INDEX_MOST),
    "peer": (0, _INDEX_MOST),
    "mean_queued": (0.0, MOST),
    "most_queued": (0, MOST),
    "dropped": (0, MOST),
    "marked": (0, MOST),
    "label": (0, _INDEX_MOST),
    "share": (0.0, 1.0 + 1e-9),
    "samples": (0, MOST),
}
"""The least and the most of a column's values. A loss or a metric may be anything: a run may diverge."""
_KINDS = {
    "worker": ("kind", set(get_args(Kind))),
    "participant": ("what", set(get_args(What))),
}
"""What rows may tell of whom."""


def conform(table: pa.Table, schema: pa.Schema, file: Path) -> pa.Table:
    """The table with the schema's columns and types; what may be null is so in a table that has no such column.

    Raises InputError, which names the `file`, where a column is missing, doubled, of another kind or has gaps.
    """
    columns = [_column(table, field, file) for field in schema]
    return pa.table(columns, schema=schema)


def checked(table: pa.Table, file: Path, workers: int | None) -> pd.DataFrame:
    """The table of a run with so many workers, None where that is unknown, for pandas.

    Raises InputError, which names the `file`, for a value that cannot have been measured.
    """
    frame: pd.DataFrame = table.to_pandas()
    for name, (least, most) in _RANGES.items():
        if name in frame:
            if name == "worker" and workers is not None:
                most = workers - 1
            _check_range(frame[name], table.schema.field(name).nullable, least, most, file)
    for of, (name, kinds) in _KINDS.items():
        if {of, name} <= set(frame) and not frame[name].isin(kinds).all():
            raise InputError("holds rows of another kind", file=file, path=name, allowed=", ".join(sorted(kinds)))
    return frame


def _check_range(column: pd.Series, may_be_null: bool, least: float, most: float, file: Path) -> None:
    values = column.to_numpy()
    fits = (values >= least) & (values <= most)
    if may_be_null:
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
