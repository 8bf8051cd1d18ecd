"""Dense layers by oneDNN.

PyTorch gives matrix products to MKL, which on other processors than Intel's leaves half of their vectors' width unused.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeGuard, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

_LEAST = 2**16
"""Weights from which on a layer gains: oneDNN takes some microseconds before it starts."""


class OneDnnLinear(nn.Module):
    """A dense layer with the parameters of `plain`. Differs from `nn.Linear` by rounding."""

    def __init__(self, plain: nn.Linear) -> None:
        super().__init__()
        _prepare()
        self.weight, self.bias = plain.weight, plain.bias

    @staticmethod
    def replaces(layer: nn.Module) -> TypeGuard[nn.Linear]:
        # The operator is one that torch.compile uses, and no part of PyTorch's documented interface.
        is_there = hasattr(torch.ops.mkldnn, "_linear_pointwise")
        return is_there and type(layer) is nn.Linear and layer.weight.numel() >= _LEAST

    def forward(self, inputs: Tensor) -> Tensor:
        """Of [..., I], the outputs [..., O]."""
        if inputs.dim() != 2:
            return linear(inputs, self.weight, self.bias)
        apply: Any = _Dense.apply
        return cast(Tensor, apply(inputs, self.weight, self.bias))


class _Dense(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.is_biased = bias is not None
        return _multiply(inputs, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None]:
        inputs, weight = ctx.saved_tensors
        # A model's first layer passes no gradient on.
        by_inputs = _multiply(gradient, weight.t()) if ctx.needs_input_grad[0] else None
        by_weight = _multiply(gradient.t().contiguous(), inputs.t())
        return by_inputs, by_weight, gradient.sum(0) if ctx.is_biased else None


@cache
def _prepare() -> None:
    """Use the operator once, as a check."""
    _multiply(torch.zeros(1, 1), torch.zeros(1, 1), torch.zeros(1))


def _multiply(one: Tensor, other: Tensor, bias: Tensor | None = None) -> Tensor:
    """one @ other^T + bias."""
    return cast(Tensor, torch.ops.mkldnn._linear_pointwise(one, other, bias, "none", [], ""))
