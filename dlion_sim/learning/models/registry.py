"""Models by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from dlion_sim.errors import InputError
from dlion_sim.learning.datasets.dataset import InputKind
from dlion_sim.learning.models.gpt import gpt
from dlion_sim.learning.models.mobilenet import mobilenet
from dlion_sim.learning.models.resnet18 import resnet18
from dlion_sim.learning.models.small import cipher, mlp, tf_ako, tutorial_cnn
from dlion_sim.learning.process import seeded


@dataclass(frozen=True)
class Architecture:
    """How to make a model, from the shape of a sample's inputs and the width of the last layer, and what it takes."""

    make: Callable[..., nn.Module]
    """Also of what a scenario may set, by keywords."""
    takes: tuple[InputKind, ...] = ("images",)


MODELS: Mapping[str, Architecture] = {
    "cipher": Architecture(cipher),
    "gpt": Architecture(gpt, takes=("tokens",)),
    "mlp": Architecture(mlp, takes=("images", "numbers")),
    "mobilenet": Architecture(mobilenet),
    "resnet18": Architecture(resnet18),
    "tf_ako": Architecture(tf_ako),
    "tutorial_cnn": Architecture(tutorial_cnn),
}


def build(name: str, input_shape: tuple[int, ...], outputs: int, seed: int, **parameters: Any) -> nn.Module:
    """The model `name` for samples of that shape, [C, H, W] of images, on the CPU, with its initial parameters.

    The same `seed` gives the same parameters; global random state is left as it was. `parameters` are the model's own.
    Raises InputError for an unknown name.
    """
    if name not in MODELS:
        allowed = f"{', '.join(MODELS)}, or package.module:name"
        raise InputError(f"no model is named {name!r}", path="model", allowed=allowed)
    with seeded(seed):
        return MODELS[name].make(input_shape, outputs, **parameters)
