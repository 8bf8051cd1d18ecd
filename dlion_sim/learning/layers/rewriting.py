"""Replacement of a model's layers by faster ones."""

from __future__ import annotations

from torch import nn

from dlion_sim.learning.layers.dense import OneDnnLinear
from dlion_sim.learning.layers.pooling import RectifiedMaxPool2d
from dlion_sim.learning.layers.winograd import WinogradConv2d


def with_faster_layers(model: nn.Module) -> nn.Module:
    """`model` itself, with successive layers of each `nn.Sequential` replaced by faster ones for a CPU."""
    for layers in [*model.modules()]:
        if isinstance(layers, nn.Sequential):
            _replace(layers)
    return model


def _replace(layers: nn.Sequential) -> None:
    for place, (layer, after) in enumerate(zip(layers, [*layers][1:], strict=False)):
        if type(layer) is nn.ReLU and RectifiedMaxPool2d.replaces(after):
            layers[place], layers[place + 1] = RectifiedMaxPool2d(), nn.Identity()
    for place, layer in enumerate(layers):
        if WinogradConv2d.replaces(layer):
            rectifies = place + 1 < len(layers) and type(layers[place + 1]) is nn.ReLU
            layers[place] = WinogradConv2d(layer, rectifies)
            if rectifies:
                layers[place + 1] = nn.Identity()
        elif OneDnnLinear.replaces(layer):
            layers[place] = OneDnnLinear(layer)
