"""MobileNet v1: the model of DLion's GPU experiments."""

from __future__ import annotations

from torch import nn

_GROUPS = 8
"""Channel groups that are normalised together; divides every width of the network."""

# Output channels and stride of each depthwise-separable block (Howard et al., 2017, table 1).
_BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))


def mobilenet(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """MobileNet v1 of width 1.0: 4,231,976 parameters (16.9 MB) for 3 x 224 x 224 inputs and 1000 classes.

    Deviates from Howard et al. (arXiv:1704.04861): group normalisation (Wu and He, ECCV 2018) instead of batch
    normalisation. Replicas exchange gradients, and the running statistics of batch normalisation have none: each
    replica would keep its own. The number of parameters is the same.
    """
    channels, _, _ = input_shape
    layers = _normalised(nn.Conv2d(channels, 32, 3, stride=2, padding=1, bias=False))
    inputs = 32
    for width, stride in _BLOCKS:
        layers += _normalised(nn.Conv2d(inputs, inputs, 3, stride, padding=1, groups=inputs, bias=False))
        layers += _normalised(nn.Conv2d(inputs, width, 1, bias=False))
        inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, outputs))


def _normalised(convolution: nn.Conv2d) -> list[nn.Module]:
    return [convolution, nn.GroupNorm(_GROUPS, convolution.out_channels), nn.ReLU()]
