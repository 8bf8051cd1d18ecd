"""Keeping freed memory at hand."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from dlion_sim.learning.process import while_needed

# Of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_ALL = 2**31 - 1
_MOST_BY_ITSELF = 2**25
"""What the library raises the second one to at most, and the first one to twice as much; and what versions before 2.35
take for the second one."""


@while_needed
@contextmanager
def kept_memory() -> Iterator[None]:
    """Have the C library give memory that is freed to whoever asks next, and none back to the system; glibc's only.

    Otherwise each of the large, short-lived tensors of a gradient comes as pages that the system has to clear first,
    and that no cache holds. After the block the system has back what is free, and the thresholds are where the library
    raises them to by itself: it tells nobody where they were.
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
