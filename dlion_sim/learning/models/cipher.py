"""Cipher: the small CNN of DLion's CPU experiments."""

from __future__ import annotations

from torch import nn


def cipher(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Three convolutions and two dense layers: 1,248,896 parameters (4.996 MB) on CIFAR-10.

    A stand-in: DLion (Hong and Chandra, HPDC 2021) is known to use three convolutional and two fully
    connected layers of 5 MB in all; the layers' own sizes are unknown. These are those of TF.AKO, by the same first
    author, with the first dense layer narrowed from 1024 to 290 units to meet that size.
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
