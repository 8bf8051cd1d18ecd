"""ReLU and max pooling in one pass each way, where PyTorch takes four over larger memory."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dlion_sim.learning.layers.images import empty_images, pixels


class RectifiedMaxPool2d(nn.Module):
    """`nn.ReLU` followed by `nn.MaxPool2d(2)`, equal to the bit."""

    def __init__(self) -> None:
        super().__init__()
        _prepare()

    @staticmethod
    def replaces(layer: nn.Module) -> bool:
        """Whether `layer` is the pooling that this one does after a ReLU."""
        return type(layer) is nn.MaxPool2d and (
            (layer.kernel_size, layer.stride, layer.padding, layer.dilation) == (2, 2, 0, 1)
            and not layer.ceil_mode
            and not layer.return_indices
        )

    def forward(self, images: Tensor) -> Tensor:
        """Of [B, C, H, W], the largest of each square of four, or 0: [B, C, H // 2, W // 2]."""
        pool: Any = _Pooling.apply
        return cast(Tensor, pool(images))


class _Pooling(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        batch, channels, height, width = images.shape
        pooled = empty_images(batch, channels, height // 2, width // 2)
        ctx.shape = images.shape
        ctx.winners = np.empty((batch, height // 2, width // 2, channels), np.uint8)
        _pool(pixels(images), pixels(pooled), ctx.winners)
        return pooled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        by_images = empty_images(*ctx.shape)
        _unpool(pixels(gradient), ctx.winners, pixels(by_images))
        return by_images


@cache
def _prepare() -> None:
    """Compile or load the functions below, as a check."""
    images, pooled = np.zeros((1, 2, 2, 1), np.float32), np.zeros((1, 1, 1, 1), np.float32)
    winners = np.zeros((1, 1, 1, 1), np.uint8)
    _pool(images, pooled, winners)
    _unpool(pooled, winners, images)


_NONE = 4
"""The winner where no value is above 0."""


@njit(cache=True, nogil=True)
def _pool(images: Any, pooled: Any, winners: Any) -> None:
    """Writes the maxima and which of the four they are: as in torch the first of equal ones, and the last NaN."""
    batch, height, width, channels = pooled.shape
    for sample in range(batch):
        for row in range(height):
            for column in range(width):
                for channel in range(channels):  # side by side in memory, so compiled for vectors
                    largest, winner = np.float32(0), np.int32(_NONE)
                    for place in range(4):
                        value = images[sample, 2 * row + place // 2, 2 * column + place % 2, channel]
                        if value > largest or value != value:
                            largest, winner = value, np.int32(place)
                    pooled[sample, row, column, channel] = largest
                    winners[sample, row, column, channel] = winner


@njit(cache=True, nogil=True)
def _unpool(gradient: Any, winners: Any, images: Any) -> None:
    """Writes the gradient by the images: that of each maximum where it came from, 0 elsewhere."""
    batch, height, width, channels = gradient.shape
    images[:, 2 * height :] = 0
    images[:, :, 2 * width :] = 0
    for sample in range(batch):
        for row in range(height):
            for column in range(width):
                for place in range(4):
                    for channel in range(channels):
                        is_winner = winners[sample, row, column, channel] == place
                        value = gradient[sample, row, column, channel] if is_winner else np.float32(0)
                        images[sample, 2 * row + place // 2, 2 * column + place % 2, channel] = value
