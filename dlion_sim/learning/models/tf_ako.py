"""The CNN of TF.AKO, whose published runs calibrate the simulator."""

from __future__ import annotations

import torch
from torch import nn

from dlion_sim.learning.models.cipher import three_convolutions

_DEVIATION = 0.1
_BIAS = 0.1


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
