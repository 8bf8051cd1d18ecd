"""The kernels of a model's layers: this package's on a CPU, if they can be compiled, or PyTorch's."""

from __future__ import annotations

import copy
import logging
from math import prod, sqrt
from typing import Literal

import torch
from torch import nn

Kernels = Literal["fast", "torch"]
"""fast: this package's for suitable layers, PyTorch's for others; torch: PyTorch's for all."""

_LOG = logging.getLogger(__name__)


def with_kernels(model: nn.Module, kernels: Kernels) -> nn.Module:
    """`model` itself, with layers that use these kernels.

    Parameters stay the same objects, with the same names and order. Results differ by rounding. Errors of the compiler
    are not caught.
    """
    if kernels == "torch":
        return model
    for layers in [*model.modules()]:
        if type(layers) is nn.Sequential:  # One of another class may call its layers otherwise than in order.
            _replace(layers)
    return model


def _replace(layers: nn.Sequential) -> None:
    """Replace successive layers by faster ones for a CPU."""
    # Only here, as numba or LLVM may fail already when they are imported.
    from dlion_sim.learning.layers.dense import OneDnnLinear
    from dlion_sim.learning.layers.depthwise import DepthwiseConv2d
    from dlion_sim.learning.layers.pooling import RectifiedMaxPool2d
    from dlion_sim.learning.layers.winograd import WinogradConv2d

    for place, (layer, after) in enumerate(zip(layers, [*layers][1:], strict=False)):
        if type(layer) is nn.ReLU and RectifiedMaxPool2d.replaces(after):
            layers[place], layers[place + 1] = RectifiedMaxPool2d(), nn.Identity()
    for place, layer in enumerate(layers):
        if WinogradConv2d.replaces(layer):
            rectifies = place + 1 < len(layers) and type(layers[place + 1]) is nn.ReLU
            layers[place] = WinogradConv2d(layer, rectifies)
            if rectifies:
                layers[place + 1] = nn.Identity()
        elif DepthwiseConv2d.replaces(layer):
            layers[place] = DepthwiseConv2d(layer)
        elif OneDnnLinear.replaces(layer):
            layers[place] = OneDnnLinear(layer)


def usable_kernels(model: nn.Module, device: torch.device, wanted: Kernels, inputs: torch.Tensor) -> Kernels:
    """The kernels that compute `model` on `device`: "fast" only if wanted, on a CPU, and if there is a layer for them.

    Logs a warning if they cannot be compiled, or if the outputs for `inputs` [N, ...] are others, as of a model that
    uses layers of a sequence one by one. Raises what the model itself raises.
    """
    if wanted == "torch" or device.type != "cpu":
        return "torch"
    moved = _moved(copy.deepcopy(model))
    expected = _outputs(copy.deepcopy(moved), inputs)
    try:
        faster = with_kernels(moved, wanted)
    except Exception as error:  # any error of a compiler or of an operator of another version
        _LOG.warning(
            "kernels: fast cannot be compiled here (%s), so PyTorch's kernels compute, and take longer", _line(error)
        )
        return "torch"
    if [*map(type, faster.modules())] == [*map(type, model.modules())]:
        return "torch"
    try:
        fault = "" if _are_close(_outputs(faster, inputs), expected) else "its outputs would be others"
    except Exception as error:  # as of shapes that fit no more
        fault = _line(error)
    if fault:
        _LOG.warning(
            "kernels: fast does not suit how this model uses its layers (%s), so PyTorch's kernels compute", fault
        )
    return "torch" if fault else "fast"


def _moved(model: nn.Module) -> nn.Module:
    """`model` itself, with other parameters nearby: before weights that are initially 0, layers have no effect."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            scale = 0.1 / sqrt(max(1, prod(parameter.shape[1:])))  # of what a layer's inputs add up to
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=scale)
    return model


def _line(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _outputs(model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """Of a model that may draw random numbers: the same ones each time."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        outputs: torch.Tensor = model.eval()(inputs)
    return outputs


def _are_close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether outputs differ by no more than rounding."""
    return torch.allclose(found, expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()), equal_nan=True)
