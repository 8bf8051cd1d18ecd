"""Descriptions of faulty targets."""

from __future__ import annotations

from torch import Tensor


def described(tensor: Tensor) -> str:
    """Type and shape, e.g. "float32 [100, 3]"."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def outside(targets: Tensor, count: int) -> str | None:
    """The fault of targets that are not all from 0 to `count` - 1, if there is one."""
    least, most = targets.aminmax()
    if least >= 0 and most < count:
        return None
    return f"must be from 0 to {count - 1}, not {least} to {most}"
