"""Small models: a perceptron, and CNNs of few layers."""

from __future__ import annotations

from math import prod

import torch
from torch import nn

_DEVIATION = _BIAS = 0.1
"""Of TF.AKO's initial values."""


def mlp(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """One hidden layer of 128 units."""
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(input_shape), 128), nn.ReLU(), nn.Linear(128, outputs))


def cipher(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Three convolutions and two dense layers: 1,248,896 parameters (4.996 MB) on CIFAR-10.

    A stand-in for the small CNN of DLion's CPU experiments (Hong and Chandra, HPDC 2021), which is known to have three
    convolutional and two fully connected layers of 5 MB in all; the layers' own sizes are unknown. These are those of
    TF.AKO, by the same first author, with the first dense layer narrowed from 1024 to 290 units to meet that size.
    """
    return three_convolutions(input_shape, outputs, hidden=290)


def three_convolutions(input_shape: tuple[int, ...], outputs: int, hidden: int) -> nn.Sequential:
    """Three convolutions and two dense layers, the first of them of `hidden` units."""
    channels, height, width = input_shape
    return nn.Sequential(
        nn.Conv2d(channels, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * (height // 4) * (width // 4), hidden),
        nn.ReLU(),
        nn.Linear(hidden, outputs),
    )


def tf_ako(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Three convolutions and two dense layers: 4,263,434 parameters (17.05 MB) on CIFAR-10.

    Layers and initial values are those of mesh-umn/TF.AKO, redis_ako_model.py: weights normal of deviation 0.1, redrawn
    beyond two deviations, and biases 0.1. Its dropout is left out, so that a gradient is a function of parameters and
    samples alone.
    """
    model = three_convolutions(input_shape, outputs, hidden=1024)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                nn.init.trunc_normal_(parameter, std=_DEVIATION, a=-2 * _DEVIATION, b=2 * _DEVIATION)
            else:
                nn.init.constant_(parameter, _BIAS)
    return model


def tutorial_cnn(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Two convolutions and two dense layers: 4,259,274 parameters (17.04 MB) on CIFAR-10.

    Meets the "2 conv + 2 fc, 17 MB" of the first DLion paper (Hong and Chandra, HotCloud 2019). Without dropout, so
    that a gradient is a function of parameters and samples alone.
    """
    channels, height, width = input_shape
    return nn.Sequential(
        nn.Conv2d(channels, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * (height // 4) * (width // 4), 1024),
        nn.ReLU(),
        nn.Linear(1024, outputs),
    )
