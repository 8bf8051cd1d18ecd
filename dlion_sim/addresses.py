"""Arrays by their addresses: passing many of them to a compiled function takes longer than a small one runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def locate(*arrays: Any) -> Any:
    """The addresses and lengths of arrays, int64 [arrays, 2], valid while these exist."""
    return np.array([(array.ctypes.data, len(array)) for array in arrays], np.int64)


@intrinsic
def pointer(_: Any, address: Any) -> Any:
    """The memory at an address, for numba's `carray`, in compiled functions."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), generate
