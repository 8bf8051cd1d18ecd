"""The CNN of TensorFlow's tutorial, which DLion's workshop paper trains."""

from __future__ import annotations

from torch import nn


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
