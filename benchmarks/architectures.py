"""Networks by the sizes of their variables and their costs per sample, as in torchvision and BERT's paper.

A scenario's model `benchmarks.architectures:resnet50` is a stand-in with as many variables of proportional sizes;
`workload.cost_as` gives its messages and computations the costs of the real network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

_ENTRIES = 400_000
"""Approximate number of a stand-in."""
_LEAST_ENTRIES = 16
"""Of each of its variables: one for each of sixteen workers of a ring."""
_TRAINING = 3
"""A backward pass costs two forward passes."""


@dataclass
class Architecture:
    """A network's variables in order, and its cost; its methods add layers, whose outputs are `side` wide and high."""

    sizes: list[int] = field(default_factory=list)
    """Entries of each variable."""
    multiplications: float = 0.0
    """Of a sample's forward pass, each with an addition."""

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return sum(self.sizes)

    @property
    def training_flops(self) -> float:
        """Of a sample's forward and backward pass."""
        return 2 * _TRAINING * self.multiplications

    def stand_in(self) -> nn.Module:
        """A model that learns, with a smaller variable for each of the network's."""
        smaller = math.ceil(self.parameters / _ENTRIES)
        return _StandIn([max(_LEAST_ENTRIES, round(size / smaller)) for size in self.sizes])

    def convolution(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        side: int,
        *,
        groups: int = 1,
        bias: bool = False,
        norm: bool = True,
    ) -> None:
        """A convolution, with a bias or a batch normalisation after it, or both or neither."""
        weights = kernel**2 * inputs // groups * outputs
        self.sizes += [weights, *([outputs] if bias else []), *([outputs, outputs] if norm else [])]
        self.multiplications += weights * side**2

    def dense(self, inputs: int, outputs: int, times: int = 1) -> None:
        """A dense layer with a bias, for each of so many positions."""
        self.sizes += [inputs * outputs, outputs]
        self.multiplications += inputs * outputs * times


class _StandIn(nn.Module):
    """A model of the means of its variables."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.variables = nn.ParameterList(nn.Parameter(torch.zeros(size)) for size in sizes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Scores of ten classes [n, 10] for inputs [n, ...]."""
        return inputs.flatten(1)[:, :10] * torch.stack([each.mean() for each in self.variables]).sum()


def _resnet(blocks: Sequence[int], *, bottleneck: bool = False, norm: bool = True) -> Architecture:
    """He et al., CVPR'16, with so many blocks in its four stages."""
    network, inputs, expansion = Architecture(), 64, 4 if bottleneck else 1
    network.convolution(3, 64, 7, 112, norm=norm)
    for stage, count in enumerate(blocks):
        width, side = 64 * 2**stage, 56 // 2**stage
        for block in range(count):
            before = 2 * side if stage and not block else side
            if bottleneck:
                network.convolution(inputs, width, 1, before, norm=norm)
                network.convolution(width, width, 3, side, norm=norm)
                network.convolution(width, 4 * width, 1, side, norm=norm)
            else:
                network.convolution(inputs, width, 3, side, norm=norm)
                network.convolution(width, width, 3, side, norm=norm)
            if inputs != expansion * width:
                network.convolution(inputs, expansion * width, 1, side, norm=norm)
            inputs = expansion * width
    network.dense(inputs, 1000)
    return network


def _vgg(convolutions: Sequence[int]) -> Architecture:
    """Simonyan and Zisserman, ICLR'15, with so many convolutions at its five resolutions, and no normalisation."""
    network, inputs = Architecture(), 3
    for stage, count in enumerate(convolutions):
        outputs = min(64 * 2**stage, 512)
        for _ in range(count):
            network.convolution(inputs, outputs, 3, 224 // 2**stage, bias=True, norm=False)
            inputs = outputs
    for ends in ((512 * 7 * 7, 4096), (4096, 4096), (4096, 1000)):
        network.dense(*ends)
    return network


def _alexnet() -> Architecture:
    """Krizhevsky, 2014: on one GPU."""
    network = Architecture()
    for layer in ((3, 64, 11, 55), (64, 192, 5, 27), (192, 384, 3, 13), (384, 256, 3, 13), (256, 256, 3, 13)):
        network.convolution(*layer, bias=True, norm=False)
    for ends in ((256 * 6 * 6, 4096), (4096, 4096), (4096, 1000)):
        network.dense(*ends)
    return network


def _squeezenet() -> Architecture:
    """Iandola et al., 2016: version 1.0."""
    network, inputs = Architecture(), 96
    network.convolution(3, 96, 7, 109, bias=True, norm=False)
    for squeezed, expanded, side in (
        *((16, 64, 54), (16, 64, 54), (32, 128, 54)),
        *((32, 128, 27), (48, 192, 27), (48, 192, 27), (64, 256, 27), (64, 256, 13)),
    ):
        network.convolution(inputs, squeezed, 1, side, bias=True, norm=False)
        network.convolution(squeezed, expanded, 1, side, bias=True, norm=False)
        network.convolution(squeezed, expanded, 3, side, bias=True, norm=False)
        inputs = 2 * expanded
    network.convolution(inputs, 1000, 1, 13, bias=True, norm=False)
    return network


def _mobilenet() -> Architecture:
    """Sandler et al., CVPR'18: version 2."""
    network, inputs = Architecture(), 32
    network.convolution(3, 32, 3, 112)
    for expansion, outputs, count, before, side in (
        *((1, 16, 1, 112, 112), (6, 24, 2, 112, 56), (6, 32, 3, 56, 28), (6, 64, 4, 28, 14)),
        *((6, 96, 3, 14, 14), (6, 160, 3, 14, 7), (6, 320, 1, 7, 7)),
    ):
        for block in range(count):
            inner = expansion * inputs
            if expansion > 1:
                network.convolution(inputs, inner, 1, side if block else before)
            network.convolution(inner, inner, 3, side, groups=inner)
            network.convolution(inner, outputs, 1, side)
            inputs = outputs
    network.convolution(320, 1280, 1, 7)
    network.dense(1280, 1000)
    return network


def _shufflenet() -> Architecture:
    """Ma et al., ECCV'18: version 2, half as wide."""
    network, inputs = Architecture(), 24
    network.convolution(3, 24, 3, 112)
    for outputs, count, side in ((48, 4, 28), (96, 8, 14), (192, 4, 7)):
        half = outputs // 2
        network.convolution(inputs, inputs, 3, side, groups=inputs)
        network.convolution(inputs, half, 1, side)
        for unit in range(count):
            network.convolution(half if unit else inputs, half, 1, side if unit else 2 * side)
            network.convolution(half, half, 3, side, groups=half)
            network.convolution(half, half, 1, side)
        inputs = outputs
    network.convolution(192, 1024, 1, 7)
    network.dense(1024, 1000)
    return network


def _bert_large(tokens: int = 384) -> Architecture:
    """Devlin et al., NAACL'19, with the outputs of question answering, on so many tokens."""
    network, width = Architecture([30522 * 1024, 512 * 1024, 2 * 1024, 1024, 1024]), 1024
    for _ in range(24):
        for _ in range(4):
            network.dense(width, width, tokens)
        network.sizes += [width, width]
        network.multiplications += 2 * tokens**2 * width
        network.dense(width, 4 * width, tokens)
        network.dense(4 * width, width, tokens)
        network.sizes += [width, width]
    network.dense(width, 2, tokens)
    return network


NETWORKS: dict[str, Architecture] = {
    "alexnet": _alexnet(),
    "squeezenet": _squeezenet(),
    "shufflenet": _shufflenet(),
    "mobilenet": _mobilenet(),
    "resnet10": _resnet((1, 1, 1, 1)),
    "resnet18": _resnet((2, 2, 2, 2)),
    "resnet34": _resnet((3, 4, 6, 3)),
    "resnet50": _resnet((3, 4, 6, 3), bottleneck=True),
    "resnet101": _resnet((3, 4, 23, 3), bottleneck=True),
    "resnet152": _resnet((3, 8, 36, 3), bottleneck=True),
    "resnet18_no_norm": _resnet((2, 2, 2, 2), norm=False),
    "resnet50_no_norm": _resnet((3, 4, 6, 3), bottleneck=True, norm=False),
    "resnet152_no_norm": _resnet((3, 8, 36, 3), bottleneck=True, norm=False),
    "vgg11": _vgg((1, 1, 2, 2, 2)),
    "vgg13": _vgg((2, 2, 2, 2, 2)),
    "vgg16": _vgg((2, 2, 3, 3, 3)),
    "vgg19": _vgg((2, 2, 4, 4, 4)),
    "bert_large": _bert_large(),
}


def __getattr__(name: str) -> Callable[[], nn.Module]:
    """A network's stand-in, by the name that a scenario's model has."""
    if name not in NETWORKS:
        raise AttributeError(name)
    return NETWORKS[name].stand_in
