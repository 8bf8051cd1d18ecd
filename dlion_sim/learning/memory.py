"""Reuse of freed memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from dlion_sim.learning.process import while_needed

# Of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_ALL = 2**31 - 1
_MOST_BY_ITSELF = 2**25
"""The library's own maximum of the second threshold (twice that of the first one), and of versions before 2.35."""


@while_needed
@contextmanager
def kept_memory() -> Iterator[None]:
    """The C library (glibc) keeps freed memory within the block, in place of returning it to the system.

    Otherwise each large, short-lived tensor of a gradient gets pages that the system has to clear, and that are in no
    cache. After the block, free memory is returned, and the thresholds are at the library's own maximum: their former
    values cannot be read.
    """
    try:
        library = ctypes.CDLL(None)
        mallopt, trim = library.mallopt, library.malloc_trim
    except (AttributeError, OSError, TypeError):
        yield
        return
    if not mallopt(_MMAP_THRESHOLD, _ALL):
        mallopt(_MMAP_THRESHOLD, _MOST_BY_ITSELF)
    mallopt(_TRIM_THRESHOLD, _ALL)
    try:
        yield
    finally:
        mallopt(_MMAP_THRESHOLD, _MOST_BY_ITSELF)
        mallopt(_TRIM_THRESHOLD, 2 * _MOST_BY_ITSELF)
        trim(0)
