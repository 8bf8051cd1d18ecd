"""Reduction of data to what a page can hold: fewer points that look the same, packed arrays."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
_TYPES = {"f8": "<f8", "f4": "<f4", "i4": "<i4", "i2": "<i2", "u1": "|u1"}


def line(times: Floats, values: Floats, buckets: int) -> Indices:
    """The points of a line to keep: the first, least, greatest and last of each bucket of time.

    Drawn with up to `buckets` pixels across, the line covers the same ones. `times` (s) do not decrease; points without
    a value, and between equal ones, are left out.
    """
    known = np.flatnonzero(~np.isnan(values))
    if len(known) <= 2 * buckets:
        return _changes(values, known)
    span = max(times[known[-1]] - times[known[0]], np.finfo(float).tiny)
    bucket = np.minimum((times[known] - times[known[0]]) / span * buckets, buckets - 1).astype(int)
    begins = np.flatnonzero(np.diff(bucket, prepend=-1))
    ends = np.append(begins[1:], len(known)) - 1
    by_value = np.lexsort((values[known], bucket))
    kept = np.unique(np.concatenate([begins, ends, by_value[begins], by_value[ends]]))
    return _changes(values, known[kept])


def _changes(values: Floats, kept: Indices) -> Indices:
    """The points at which a value begins or ends."""
    if len(kept) < 3:
        return kept
    same = np.diff(values[kept]) == 0
    needed = np.ones(len(kept), dtype=bool)
    needed[1:-1] = ~(same[:-1] & same[1:])
    return kept[needed]


def band(times: Floats, values: Floats, end: float, buckets: int) -> pd.DataFrame:
    """`mean`, `low` and `high` of many lines' values, by bucket of the time from 0 to `end` (s).

    The index is the middle of each bucket; empty buckets are left out.
    """
    known = ~np.isnan(values)
    bucket = np.clip(times[known] / end * buckets, 0, buckets - 1).astype(np.int64)  # the end is in the last one
    table = (
        pd.DataFrame({"bucket": bucket, "value": values[known]}).groupby("bucket")["value"].agg(["mean", "min", "max"])
    )
    middles = pd.Index((table.index.to_numpy() + 0.5) * end / buckets, name="time")
    return table.set_axis(["mean", "low", "high"], axis=1).set_index(middles)


def intervals(edges: Floats, most: int) -> Indices:
    """The edges to keep for at most so many intervals, each of about as many of the original ones."""
    if len(edges) - 1 <= most:
        return np.arange(len(edges))
    return np.unique(np.linspace(0, len(edges) - 1, most + 1).round().astype(np.intp))


def packed(values: npt.ArrayLike, kind: str = "f4") -> dict[str, str]:
    """An array for Plotly and the scripts' `report.numbers`: bytes, their type, and the shape.

    `kind` is "f8", "f4", "i4", "i2" or "u1". It is a third of the size of numbers as text.
    """
    array = np.ascontiguousarray(values, dtype=_TYPES[kind])
    shape = {"shape": ", ".join(map(str, array.shape))} if array.ndim > 1 else {}
    return {"dtype": kind, "bdata": b64encode(array.tobytes()).decode(), **shape}
