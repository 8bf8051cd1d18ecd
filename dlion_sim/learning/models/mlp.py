"""A multi-layer perceptron, the quickest model to train."""

from __future__ import annotations

from math import prod

from torch import nn


def mlp(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """One hidden layer of 128 units."""
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(input_shape), 128), nn.ReLU(), nn.Linear(128, outputs))
