"""The model of a workload: a ready one by name or the user's own, checked against the dataset's samples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from dlion_sim.errors import InputError
from dlion_sim.learning.datasets import Dataset, InputKind
from dlion_sim.learning.models.gpt import gpt
from dlion_sim.learning.models.normalised import mobilenet, resnet18
from dlion_sim.learning.models.small import cipher, mlp, tf_ako, tutorial_cnn
from dlion_sim.learning.process import seeded
from dlion_sim.learning.tasks import described
from dlion_sim.own_code import raised_in


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


def model_for(name: str, dataset: Dataset, seed: int, **parameters: Any) -> nn.Module:
    """The ready model `name`, on the CPU, with its initial parameters.

    The same `seed` gives the same parameters; global random state is left as it was. `parameters` are the model's own.
    Raises InputError where there is none of that name, or where it cannot be trained on the dataset.
    """
    kind = dataset.input_kind
    if name in MODELS and kind not in MODELS[name].takes:
        fitting = [each for each, model in MODELS.items() if kind in model.takes]
        raise InputError(
            f"'{name}' takes {' or '.join(MODELS[name].takes)}, and the dataset has {kind}",
            path="model",
            allowed=", ".join([*fitting, "package.module:name"]),
        )
    model = build(name, dataset.input_shape, dataset.task.outputs, seed, **parameters)
    with torch.inference_mode():
        _outputs(model, dataset, name)  # All other checks of own models hold for ready ones.
    return model


def own_model(name: str, function: Callable[[Dataset], object], dataset: Dataset, seed: int) -> nn.Module:
    """The model that the user's function `name` makes for the dataset; otherwise as `model_for`.

    What the function or the model raises comes as it is.
    """
    with seeded(seed):
        model = function(dataset)
    if not isinstance(model, nn.Module):
        raise _refused(name, f"returns a {type(model).__name__}", "a torch.nn.Module")
    _check(model, dataset, name)
    return model


def _check(model: nn.Module, dataset: Dataset, name: str) -> None:
    """Raise InputError unless a sample's gradient depends on the parameters and the sample only."""
    parameters = dict(model.named_parameters())
    if not parameters:
        raise _refused(name, "has no parameters to train")
    for variable, parameter in parameters.items():
        if parameter.dtype != torch.float32 or parameter.device.type != "cpu":
            raise _refused(name, f"has {variable} as {parameter.dtype} on {parameter.device}", "float32 on the CPU")
        if not parameter.requires_grad:
            raise _refused(name, f"does not train {variable}", "parameters that require a gradient")
    trial = copy.deepcopy(model)
    with seeded(0):
        outputs, again = _outputs(trial, dataset, name), _outputs(trial, dataset, name)
    changed = [each for each, buffer in trial.named_buffers() if not torch.equal(buffer, model.get_buffer(each))]
    if changed:
        allowed = "another normalisation than that over batches, e.g. GroupNorm"
        raise _refused(name, f"changes {changed[0]} without a gradient, which workers could not exchange", allowed)
    if not torch.equal(outputs.nan_to_num(), again.nan_to_num()):
        raise _refused(name, "has other outputs for the same sample the second time", "one without dropout or noise")
    loss = dataset.task.loss(outputs, dataset.train_targets[:1])
    gradients = torch.autograd.grad(loss, list(trial.parameters()), allow_unused=True)
    for variable, gradient in zip(parameters, gradients, strict=True):
        if gradient is None:
            raise _refused(name, f"does not use {variable}", "parameters that the outputs depend on")


def _outputs(model: nn.Module, dataset: Dataset, name: str) -> Tensor:
    """The outputs of the first sample [1, ...], with the shape that the task requires."""
    wanted = dataset.task.output_shape(dataset.train_targets[:1])
    try:
        outputs = model(dataset.sample)
    except Exception as error:
        if isinstance(error, ValueError) and (layer := _over_batches(model)):
            problem = f"normalises over a batch in {layer}, and a batch may be of one sample"
            raise _refused(name, problem, "GroupNorm or LayerNorm in its place") from error
        if raised_in(error, {"model": name}):
            raise
        problem = f"cannot take inputs of {described(dataset.sample)}: {type(error).__name__}: {error}"
        raise _refused(name, problem) from error
    if not isinstance(outputs, Tensor):
        raise _refused(name, f"gives a {type(outputs).__name__}", f"a tensor of {list(wanted)}")
    if outputs.dtype != torch.float32 or tuple(outputs.shape) != wanted:
        raise _refused(name, f"gives {described(outputs)} for a sample", f"float32 {list(wanted)}")
    return outputs


def _over_batches(model: nn.Module) -> str | None:
    """The first layer that is a batch normalisation, if any, e.g. "norm (BatchNorm1d)"."""
    found = (f"{name} ({type(each).__name__})" for name, each in model.named_modules() if isinstance(each, _BatchNorm))
    return next(found, None)


def _refused(name: str, problem: str, allowed: str | None = None) -> InputError:
    return InputError(f"'{name}' {problem}", path="model", allowed=allowed)
