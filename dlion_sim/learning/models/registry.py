"""Models by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

from dlion_sim.errors import InputError
from dlion_sim.learning.models.cipher import cipher
from dlion_sim.learning.models.mlp import mlp
from dlion_sim.learning.models.mobilenet import mobilenet
from dlion_sim.learning.models.tf_ako import tf_ako
from dlion_sim.learning.models.tutorial_cnn import tutorial_cnn

MODELS: Mapping[str, Callable[[tuple[int, int, int], int], nn.Module]] = {
    "cipher": cipher,
    "mlp": mlp,
    "mobilenet": mobilenet,
    "tf_ako": tf_ako,
    "tutorial_cnn": tutorial_cnn,
}


def build(name: str, input_shape: tuple[int, int, int], classes: int, seed: int) -> nn.Module:
    """The model `name` for images [C, H, W] and `classes` logits, on the CPU, with its initial parameters.

    The same `seed` gives the same parameters; global random state is left as it was. Raises InputError for an unknown
    name.
    """
    if name not in MODELS:
        raise InputError(f"no model is named {name!r}", path="model", allowed=", ".join(MODELS))
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which would seed the accelerators too.
        torch.default_generator.manual_seed(seed)
        return MODELS[name](input_shape, classes)
