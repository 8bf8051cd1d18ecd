"""What it costs to train a model, in floating-point operations."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode


def training_flops(model: nn.Module, sample: Tensor) -> float:
    """FLOPs of one forward and backward pass for ONE `sample` [1, ...]; a multiply-add counts as two.

    Counts convolutions and matrix products, as torch's counter does. `model` is left alone, and nothing is computed
    unless it makes tensors of its own on the CPU.
    """
    try:
        return _counted(copy.deepcopy(model).to("meta"), sample.to("meta"))
    except (NotImplementedError, RuntimeError):  # what is on "meta" meets what has a device
        return _counted(copy.deepcopy(model), sample)


def _counted(model: nn.Module, sample: Tensor) -> float:
    formulas = {torch.ops.aten.convolution_backward: _convolution_backward}
    with FlopCounterMode(display=False, custom_mapping=formulas) as counter:
        model(sample).sum().backward()
    return float(counter.get_total_flops())


# torch's own formula takes a grouped convolution for a dense one, which makes MobileNet 3.5 times as costly as it is.
def _convolution_backward(
    grad_shape: Sequence[int], _input_shape: Sequence[int], weight_shape: Sequence[int], *rest: Any, **_: Any
) -> int:
    """Each gradient that is wanted, the inputs' and the weights', costs as much as the forward pass."""
    batch, _channels, *positions = grad_shape
    wanted: int = sum(rest[-1][:2])  # of the gradients of inputs, weights and bias
    return 2 * batch * prod(positions) * prod(weight_shape) * wanted
