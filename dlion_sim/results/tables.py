"""The two tables of a run: their columns, types and units. A unit also stands in its column's Parquet metadata."""

from __future__ import annotations

from typing import Literal, NamedTuple

import pyarrow as pa


class MetricsRow(NamedTuple):
    """One iteration or one evaluation of one worker; the column notes stand at `METRICS`."""

    virtual_time: float
    wall_time: float
    worker: int
    kind: Literal["iteration", "evaluation"]
    iteration: int
    loss: float
    accuracy: float | None = None
    batch_size: int | None = None
    global_batch_size: int | None = None
    staleness: float | None = None
    applied: int | None = None
    merged: int | None = None
    compute_seconds: float | None = None
    wait_seconds: float | None = None


class LinksRow(NamedTuple):
    """What one directed link carried in one interval; the column notes stand at `LINKS`."""

    virtual_time: float
    sender: int
    receiver: int
    bytes: int
    messages: int
    gradients: int
    n_percent: float | None = None


def _column(name: str, kind: pa.DataType, unit: str, *, null: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=null, metadata={"unit": unit})


METRICS = pa.schema(
    [
        _column("virtual_time", pa.float64(), "s"),
        _column("wall_time", pa.float64(), "s"),  # since the start of the run
        _column("worker", pa.int32(), "index"),
        _column("kind", pa.dictionary(pa.int32(), pa.string()), "iteration | evaluation"),
        _column("iteration", pa.int64(), "iterations"),
        # Of the training batch on iterations; on evaluations of the set that the manifest's `evaluated_on` names.
        _column("loss", pa.float64(), "nats"),
        _column("accuracy", pa.float64(), "fraction", null=True),  # of that set; null on iterations
        # Null on evaluations:
        _column("batch_size", pa.int32(), "samples", null=True),  # local (LBS)
        _column("global_batch_size", pa.int32(), "samples", null=True),  # GBS
        _column("staleness", pa.float64(), "iterations", null=True),  # mean lag of the updates applied; null if none
        _column("applied", pa.int32(), "remote updates", null=True),
        _column("merged", pa.int32(), "weights merged by knowledge transfer", null=True),
        _column("compute_seconds", pa.float64(), "s", null=True),  # virtual
        _column("wait_seconds", pa.float64(), "s", null=True),  # virtual
    ]
)

WALL_CLOCK_COLUMNS = ("wall_time",)
"""The columns of METRICS that differ between two runs of one scenario and seed."""

LINKS = pa.schema(
    [
        _column("virtual_time", pa.float64(), "s"),  # end of the interval
        _column("sender", pa.int32(), "index"),
        _column("receiver", pa.int32(), "index"),
        _column("bytes", pa.int64(), "bytes"),
        _column("messages", pa.int32(), "messages"),
        _column("gradients", pa.int32(), "gradient messages"),
        _column("n_percent", pa.float64(), "percent", null=True),  # mean N of the Max-N messages; null if none
    ]
)
