"""Data and models of which only time and bytes count."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_WIDTH = 32


def samples() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Inputs and targets [64, 32], zeros, for training and test."""
    values = torch.zeros(64, _WIDTH)
    return values, values, values, values


def small() -> nn.Module:
    """Two layers of 1,024 parameters."""
    return nn.Sequential(*(nn.Linear(_WIDTH, _WIDTH, bias=False) for _ in range(2)))


def alike() -> nn.Module:
    """24 layers of 1,024 parameters."""
    return nn.Sequential(*(nn.Linear(_WIDTH, _WIDTH, bias=False) for _ in range(24)))


def wide() -> nn.Module:
    """Two layers of 131,072 parameters, beside which headers of messages count little."""
    return nn.Sequential(nn.Linear(_WIDTH, 4096, bias=False), nn.Linear(4096, _WIDTH, bias=False))
