"""Whose kernels compute a model's layers: this package's on a CPU where they can be compiled, or PyTorch's."""

from __future__ import annotations

import copy
import logging
from typing import Literal

import torch
from torch import nn

Kernels = Literal["fast", "torch"]
"""fast: this package's for the layers that they suit, and PyTorch's for others; torch: PyTorch's for all."""

_LOG = logging.getLogger(__name__)


def with_kernels(model: nn.Module, kernels: Kernels) -> nn.Module:
    """`model` itself, whose layers compute by these kernels from now on.

    Parameters stay the same objects, under the same names and in the same order. Results move by rounding. Raises
    whatever is raised where kernels cannot be compiled.
    """
    if kernels == "torch":
        return model
    # Only here, as numba or LLVM may fail already when they are imported.
    from dlion_sim.learning.layers.rewriting import with_faster_layers

    return with_faster_layers(model)


def usable_kernels(model: nn.Module, device: torch.device, wanted: Kernels) -> Kernels:
    """The kernels that compute `model` on `device`: "fast" only if wanted, on a CPU, and if there is a layer for them.

    Where they cannot be compiled, that is logged as a warning.
    """
    if wanted == "torch" or device.type != "cpu":
        return "torch"
    try:
        faster = with_kernels(copy.deepcopy(model), wanted)
    except Exception as error:  # Whatever a compiler or an operator of another version says.
        reason = next(iter(str(error).splitlines()), "")
        _LOG.warning(
            "kernels: fast cannot be compiled here (%s: %s), so PyTorch's kernels compute, and take longer",
            type(error).__name__,
            reason,
        )
        return "torch"
    is_changed = [*map(type, faster.modules())] != [*map(type, model.modules())]
    return "fast" if is_changed else "torch"
