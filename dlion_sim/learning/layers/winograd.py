"""Convolutions of 3 x 3 by Winograd's minimal filtering.

Each square of 4 x 4 outputs takes 36 products for each pair of channels, where the definition takes 144: the squares of
inputs and the weights are transformed, multiplied entry by entry, and the sums transformed back. This is F(4 x 4, 3 x
3) of Lavin and Gray, "Fast algorithms for convolutional neural networks", CVPR 2016.
"""

from __future__ import annotations

from typing import Any, TypeGuard, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import conv2d, relu

from dlion_sim.learning.layers import kernels
from dlion_sim.learning.layers.images import empty_images, pixels


class WinogradConv2d(nn.Module):
    """A convolution with the parameters of `plain`, followed by a ReLU if it `rectifies`.

    Differs from `nn.Conv2d` by rounding: by some 2e-6 of the norm, and the gradient by the images by some 5e-6.
    """

    def __init__(self, plain: nn.Conv2d, rectifies: bool = False) -> None:
        super().__init__()
        kernels.prepare()
        self.weight, self.bias = plain.weight, plain.bias
        self._rectifies = rectifies

    @staticmethod
    def replaces(layer: nn.Module) -> TypeGuard[nn.Conv2d]:
        return type(layer) is nn.Conv2d and (
            (layer.kernel_size, layer.stride, layer.padding, layer.dilation) == ((3, 3), (1, 1), (1, 1), (1, 1))
            and (layer.groups, layer.padding_mode) == (1, "zeros")
            and layer.in_channels % kernels.CHANNELS == layer.out_channels % kernels.CHANNELS == 0
        )

    def forward(self, images: Tensor) -> Tensor:
        """Of [B, C, H, W], the convolved images [B, O, H, W]."""
        if not kernels.pay(len(images), *images.shape[2:]):
            convolved = conv2d(images, self.weight, self.bias, padding=1)
            return relu(convolved) if self._rectifies else convolved
        convolve: Any = _Convolution.apply
        return cast(Tensor, convolve(images, self.weight, self.bias, self._rectifies))


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor | None, rectifies: bool) -> Tensor:
        outputs = empty_images(len(images), len(weight), *images.shape[2:])
        offsets = torch.zeros(len(weight)) if bias is None else bias.detach()
        kernels.convolve(pixels(images), _taps(weight, 1, 0), offsets.numpy(), rectifies, pixels(outputs))
        ctx.save_for_backward(images, weight, outputs if rectifies else None)
        ctx.is_biased = bias is not None
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:
        images, weight, outputs = ctx.saved_tensors
        by_outputs = pixels(gradient)
        by_images = empty_images(*images.shape)
        by_taps = torch.empty(3, 3, weight.shape[1], len(weight))
        by_bias = torch.zeros(len(weight))
        kernels.differentiate(
            pixels(images),
            _taps(weight, 0, 1),
            by_outputs if outputs is None else pixels(outputs),
            outputs is not None,
            by_outputs,
            pixels(by_images),
            by_taps.numpy(),
            by_bias.numpy(),
        )
        return by_images, by_taps.permute(3, 2, 0, 1), by_bias if ctx.is_biased else None, None


def _taps(weight: Tensor, *channels: int) -> Any:
    """Weights [O, C, 3, 3] as an array [3, 3, ...] in C order, with those two axes last."""
    return weight.detach().permute(2, 3, *channels).contiguous().numpy()
