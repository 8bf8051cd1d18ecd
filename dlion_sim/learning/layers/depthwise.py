"""Depthwise convolutions of 3 x 3, by their definition on vectors of neighbouring channels.

oneDNN's gradients of them take up to sixty times as long where images are small: in MobileNet, longer than those of the
1 x 1 convolutions, which have thirty times as many products (Howard et al., arXiv:1704.04861, table 2).
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeGuard, cast

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dlion_sim.learning.layers.images import empty_images, pixels


class DepthwiseConv2d(nn.Module):
    """A depthwise convolution with the parameters of `plain`. Differs from `nn.Conv2d` by rounding."""

    def __init__(self, plain: nn.Conv2d) -> None:
        super().__init__()
        _prepare()
        self.weight = plain.weight
        self._stride = plain.stride[0]

    @staticmethod
    def replaces(layer: nn.Module) -> TypeGuard[nn.Conv2d]:
        return type(layer) is nn.Conv2d and (
            (layer.kernel_size, layer.padding, layer.dilation) == ((3, 3), (1, 1), (1, 1))
            and layer.stride in ((1, 1), (2, 2))
            and layer.groups == layer.in_channels == layer.out_channels
            and (layer.bias, layer.padding_mode) == (None, "zeros")
        )

    def forward(self, images: Tensor) -> Tensor:
        """Of [B, C, H, W], each channel convolved by itself: [B, C, ceil(H / stride), ceil(W / stride)]."""
        convolve: Any = _Convolution.apply
        return cast(Tensor, convolve(images, self.weight, self._stride))


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, stride: int) -> Tensor:
        batch, channels, height, width = images.shape
        outputs = empty_images(batch, channels, -(-height // stride), -(-width // stride))
        _convolve(pixels(images), _taps(weight), stride, pixels(outputs))
        ctx.save_for_backward(images, weight)
        ctx.stride = stride
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        images, weight = ctx.saved_tensors
        by_images, by_taps = empty_images(*images.shape), torch.empty(3, 3, len(weight))
        _differentiate(pixels(images), _taps(weight), ctx.stride, pixels(gradient), pixels(by_images), by_taps.numpy())
        return by_images, by_taps.permute(2, 0, 1).unsqueeze(1), None


def _taps(weight: Tensor) -> Any:
    """Weights [C, 1, 3, 3] as an array [3, 3, C] in C order."""
    return weight.detach()[:, 0].permute(1, 2, 0).contiguous().numpy()


@cache
def _prepare() -> None:
    """Compile or load the functions below, as a check."""
    image, taps = np.zeros((1, 1, 1, 1), np.float32), np.zeros((3, 3, 1), np.float32)
    _convolve(image, taps, 1, image.copy())
    _differentiate(image, taps, 1, image, image.copy(), taps.copy())


@njit(cache=True, nogil=True, fastmath={"contract"})
def _convolve(images: Any, taps: Any, stride: int, outputs: Any) -> None:
    """Writes the `outputs` [B, H', W', C] of the weights `taps` [3, 3, C]."""
    height, width = images.shape[1:3]
    batch, rows, columns, channels = outputs.shape
    for sample in range(batch):
        for row in range(rows):
            for column in range(columns):
                outputs[sample, row, column] = 0
                for down in range(max(0, 1 - row * stride), min(3, height + 1 - row * stride)):
                    for right in range(max(0, 1 - column * stride), min(3, width + 1 - column * stride)):
                        for channel in range(channels):  # side by side in memory, so compiled for vectors
                            outputs[sample, row, column, channel] += (
                                images[sample, row * stride + down - 1, column * stride + right - 1, channel]
                                * taps[down, right, channel]
                            )


@njit(cache=True, nogil=True, fastmath={"contract"})
def _differentiate(images: Any, taps: Any, stride: int, gradient: Any, by_images: Any, by_taps: Any) -> None:
    """Writes the gradients, given that by the outputs [B, H', W', C]."""
    height, width = images.shape[1:3]
    batch, rows, columns, channels = gradient.shape
    by_images[:] = 0
    by_taps[:] = 0
    for sample in range(batch):
        for row in range(rows):
            for column in range(columns):
                for down in range(max(0, 1 - row * stride), min(3, height + 1 - row * stride)):
                    for right in range(max(0, 1 - column * stride), min(3, width + 1 - column * stride)):
                        above, left = row * stride + down - 1, column * stride + right - 1
                        for channel in range(channels):
                            value = gradient[sample, row, column, channel]
                            by_images[sample, above, left, channel] += value * taps[down, right, channel]
                            by_taps[down, right, channel] += value * images[sample, above, left, channel]
