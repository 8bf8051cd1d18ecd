"""As few values as tell the eye what all of them would."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
_TYPES = {"f8": "<f8", "f4": "<f4", "i4": "<i4", "i2": "<i2", "u1": "|u1"}


def line(times: Floats, values: Floats, buckets: int) -> Indices:
    """Which points of a line to keep: of each bucket of time the first, least, greatest and last.

    Drawn at up to so many pixels across, it then covers the same ones. `times` (s) do not decrease; points without a
    value are left out, as are those between which nothing changes.
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
    """Of some points those that a line needs: where a value begins or ends to be."""
    if len(kept) < 3:
        return kept
    same = np.diff(values[kept]) == 0
    needed = np.ones(len(kept), dtype=bool)
    needed[1:-1] = ~(same[:-1] & same[1:])
    return kept[needed]


def band(times: Floats, values: Floats, end: float, buckets: int) -> pd.DataFrame:
    """`mean`, `low` and `high` of many lines' values together, by bucket of the time from 0 to `end` (s).

    The index is the middle of each bucket; those without a value are left out.
    """
    known = ~np.isnan(values)
    bucket = buckets_of(times[known], end, buckets)
    table = (
        pd.DataFrame({"bucket": bucket, "value": values[known]}).groupby("bucket")["value"].agg(["mean", "min", "max"])
    )
    middles = pd.Index((table.index.to_numpy() + 0.5) * end / buckets, name="time")
    return table.set_axis(["mean", "low", "high"], axis=1).set_index(middles)


def buckets_of(times: Floats, end: float, buckets: int) -> npt.NDArray[np.int64]:
    """The bucket of each time from 0 to `end` (s), the last one's end included."""
    return np.clip(times / end * buckets, 0, buckets - 1).astype(np.int64)


def intervals(edges: Floats, most: int) -> Indices:
    """Which of some increasing edges to keep for so many intervals at most, each of about as many of the former."""
    if len(edges) - 1 <= most:
        return np.arange(len(edges))
    return np.unique(np.linspace(0, len(edges) - 1, most + 1).round().astype(np.intp))


def packed(values: npt.ArrayLike, kind: str = "f4") -> dict[str, str]:
    """An array in the form that Plotly and the scripts' `report.numbers` read: bytes, their type, and the shape.

    `kind` is "f8", "f4", "i4", "i2" or "u1". A third of the size of the same numbers in digits.
    """
    array = np.ascontiguousarray(values, dtype=_TYPES[kind])
    shape = {"shape": ", ".join(map(str, array.shape))} if array.ndim > 1 else {}
    return {"dtype": kind, "bdata": b64encode(array.tobytes()).decode(), **shape}
