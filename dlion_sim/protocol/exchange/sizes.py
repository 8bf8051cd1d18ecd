"""What the two codings of a gradient cost on the wire, in bytes."""

from __future__ import annotations

SPARSE_ENTRY_BYTES = 8
"""An int32 index and a float32 value."""
DENSE_ENTRY_BYTES = 4
HEADER_BYTES = 64
"""More than the header of any gradient message."""


def dense_is_smaller(selected: int, size: int) -> bool:
    """Whether all `size` entries without indices take no more than `selected` ones with them."""
    return SPARSE_ENTRY_BYTES * selected >= DENSE_ENTRY_BYTES * size
