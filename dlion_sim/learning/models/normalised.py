"""ResNet-18 and MobileNet, with group normalisation (Wu and He, ECCV 2018) in place of batch normalisation.

The running statistics of batch normalisation have no gradient: each replica would keep its own. The number of
parameters is the same.
"""

from __future__ import annotations

from torch import Tensor, nn

_GROUPS = 8
"""Channel groups that are normalised together; divides every width of the network."""

# Channels and stride of the first block of each stage (He et al., 2016, table 1); the second has stride 1.
_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
# Output channels and stride of each depthwise-separable block (Howard et al., 2017, table 1).
_BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))


def resnet18(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """ResNet-18 with a stem for small images: 11,173,962 parameters (44.7 MB) on CIFAR-10.

    Deviates from He et al. (CVPR 2016) in its stem, too: one 3 x 3 convolution without pooling, as is usual for CIFAR.
    """
    channels, _, _ = input_shape
    inputs = _STAGES[0][0]
    layers: list[nn.Module] = [*_normalised(channels, inputs, 1), nn.ReLU()]
    for outputs, stride in _STAGES:
        layers += [ResidualBlock(inputs, outputs, stride), ResidualBlock(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class ResidualBlock(nn.Module):
    """Two convolutions, added to what they are given; where shapes differ, to a 1 x 1 convolution of it."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            *_normalised(inputs, outputs, stride), nn.ReLU(), *_normalised(outputs, outputs, 1)
        )
        self.rectify = nn.ReLU()
        is_alike = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if is_alike else nn.Sequential(*_normalised(inputs, outputs, stride, kernel=1))

    def forward(self, images: Tensor) -> Tensor:
        """Of [B, I, H, W], the images [B, O, H / stride, W / stride]."""
        rectified: Tensor = self.rectify(self.residual(images) + self.shortcut(images))
        return rectified


def mobilenet(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """MobileNet v1 of width 1.0: 4,231,976 parameters (16.9 MB) for 3 x 224 x 224 inputs and 1000 classes.

    The model of DLion's GPU experiments (Howard et al., arXiv:1704.04861).
    """
    channels, _, _ = input_shape
    layers = _rectified(channels, 32, 2)
    inputs = 32
    for width, stride in _BLOCKS:
        layers += _rectified(inputs, inputs, stride, groups=inputs)
        layers += _rectified(inputs, width, 1, kernel=1)
        inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, outputs))


def _rectified(inputs: int, outputs: int, stride: int, kernel: int = 3, groups: int = 1) -> list[nn.Module]:
    return [*_normalised(inputs, outputs, stride, kernel, groups), nn.ReLU()]


def _normalised(inputs: int, outputs: int, stride: int, kernel: int = 3, groups: int = 1) -> list[nn.Module]:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return [convolution, nn.GroupNorm(_GROUPS, outputs)]
