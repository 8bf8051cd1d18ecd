"""Numbers as pages hold them."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
import numpy.typing as npt

_TYPES = {"f8": "<f8", "f4": "<f4", "i4": "<i4", "i2": "<i2", "u1": "|u1"}


def packed(values: npt.ArrayLike, kind: str = "f4") -> dict[str, str]:
    """An array in the form that Plotly and the scripts' `report.numbers` read: bytes, their type, and the shape.

    `kind` is "f8", "f4", "i4", "i2" or "u1". A third of the size of the same numbers in digits.
    """
    array = np.ascontiguousarray(values, dtype=_TYPES[kind])
    shape = {"shape": ", ".join(map(str, array.shape))} if array.ndim > 1 else {}
    return {"dtype": kind, "bdata": b64encode(array.tobytes()).decode(), **shape}
