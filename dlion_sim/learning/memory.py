"""Keeping freed memory at hand."""

from __future__ import annotations

import ctypes
from functools import cache

# Of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_ALL = 2**31 - 1
_MOST_OF_FORMER = 2**25
"""What versions before 2.35 take for a threshold, at most."""


@cache
def keep_freed_memory() -> None:
    """Have the C library give memory that is freed to whoever asks next, and none back to the system; glibc's only.

    Otherwise each of the large, short-lived tensors of a gradient comes as pages that the system has to clear first,
    and that no cache holds.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    if not mallopt(_MMAP_THRESHOLD, _ALL):
        mallopt(_MMAP_THRESHOLD, _MOST_OF_FORMER)
    mallopt(_TRIM_THRESHOLD, _ALL)
