"""A dataset of the user's own: the checked return value of a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from dlion_sim.errors import InputError
from dlion_sim.learning.datasets.dataset import Dataset, as_they_are
from dlion_sim.learning.process import seeded
from dlion_sim.learning.tasks import Classification, NextToken, Regression, Task, described

_FOUR = ("train_inputs", "train_targets", "test_inputs", "test_targets")
_TARGETS = "int64 [N] (classes), int64 of the inputs' shape [N, T] (next tokens), float [N] or [N, D] (numbers)"


def own_dataset(name: str, function: Callable[[], object]) -> Dataset:
    """The dataset that the user's function `name` returns: a Dataset, or its four tensors, see `_FOUR`.

    Without a task, it follows from these. Global random state is the same at every call, and restored.
    Raises InputError for an unusable dataset; the function's own errors are not caught.
    """
    with seeded(0):
        returned = function()
    try:
        return _checked(returned if isinstance(returned, Dataset) else _of_four(returned))
    except InputError as fault:
        raise InputError(f"'{name}' {fault.problem}", path="dataset", allowed=fault.allowed) from None


def _of_four(returned: object) -> Dataset:
    """A dataset of four tensors. Bytes become floats from 0 to 1."""
    if not isinstance(returned, tuple | list) or len(returned) != len(_FOUR):
        what = f"{len(returned)} things" if isinstance(returned, tuple | list) else f"a {type(returned).__name__}"
        raise InputError(f"returns {what}", allowed=f"a Dataset, or {', '.join(_FOUR)}")
    four = [_tensor(name, each) for name, each in zip(_FOUR, returned, strict=True)]
    inputs, targets, test_inputs, test_targets = four
    transform = _from_bytes if inputs.dtype == torch.uint8 else as_they_are
    return Dataset(inputs, targets, test_inputs, test_targets, transform=transform)


def _tensor(name: str, given: object) -> Tensor:
    """The tensor as float32, int64 or bytes of inputs."""
    if not isinstance(given, Tensor):
        raise InputError(f"returns a {type(given).__name__} as {name}", allowed="a torch.Tensor")
    if given.is_floating_point():
        return given.detach().cpu().float()
    keeps = given.dtype == torch.uint8 and name.endswith("inputs")
    return given.detach().cpu() if keeps or given.dtype == torch.bool or given.is_complex() else given.cpu().long()


def _from_bytes(inputs: Tensor) -> Tensor:
    return inputs.float().div_(255)


def _task(inputs: Tensor, targets: Tensor, test_inputs: Tensor, test_targets: Tensor) -> Task:
    """The task, from types and shapes of the training samples, and the largest class or token of all."""
    if targets.is_floating_point() and targets.dim() in (1, 2):
        return Regression(targets.shape[1] if targets.dim() == 2 else 1)
    if targets.dtype == torch.int64 and targets.dim() == 1:
        return Classification(_count(targets, test_targets))
    if targets.dtype == inputs.dtype == torch.int64 and targets.shape == inputs.shape and targets.dim() == 2:
        return NextToken(_count(inputs, targets, test_inputs, test_targets))
    raise InputError(
        f"returns train_targets of {described(targets)} for train_inputs of {described(inputs)}", allowed=_TARGETS
    )


def _count(*numbered: Tensor) -> int:
    return max(int(each.max()) + 1 if each.numel() else 1 for each in numbered)


def _checked(dataset: Dataset) -> Dataset:
    """The dataset on the CPU. Raises InputError, about what was returned, if it is unusable."""
    for name in _FOUR:
        if not isinstance(getattr(dataset, name), Tensor):
            raise InputError(f"returns a {type(getattr(dataset, name)).__name__} as {name}", allowed="a torch.Tensor")
    if dataset.task is None:
        task = _task(dataset.train_inputs, dataset.train_targets, dataset.test_inputs, dataset.test_targets)
        dataset = replace(dataset, task=task)
    if not isinstance(dataset.task, Task):
        raise InputError(
            f"has a {type(dataset.task).__name__} as its task", allowed="Classification, NextToken, Regression"
        )
    dataset = dataset.to(torch.device("cpu"))
    for part in ("train", "test"):
        _check_part(dataset, part)
    one, other = dataset.train_inputs, dataset.test_inputs
    if (one.shape[1:], one.dtype) != (other.shape[1:], other.dtype):
        raise InputError(
            f"returns test_inputs of {described(other)}, but train_inputs of {described(one)}",
            allowed="samples that are alike",
        )
    return _with_owners(dataset)


def _check_part(dataset: Dataset, part: str) -> None:
    inputs, targets = (getattr(dataset, f"{part}_{what}") for what in ("inputs", "targets"))
    if not inputs.numel() or not targets.numel():
        raise InputError(f"returns no samples as {part}_inputs and {part}_targets", allowed="one at least")
    if not inputs.dim() or not targets.dim() or len(inputs) != len(targets):
        problem = f"returns {part}_inputs of {described(inputs)}, but {part}_targets of {described(targets)}"
        raise InputError(problem, allowed="as many samples")
    if inputs.dtype not in (torch.float32, torch.uint8, torch.int64):
        raise InputError(f"returns {part}_inputs of {described(inputs)}", allowed="float32, uint8, int64")
    if inputs.is_floating_point() and not bool(inputs.isfinite().all()):
        raise InputError(f"returns {part}_inputs that are not all finite")
    if fault := dataset.task.fault(targets):
        raise InputError(f"returns {part}_targets that cannot be learned: they {fault}")


def _with_owners(dataset: Dataset) -> Dataset:
    owners = dataset.owners
    if owners is None:
        return dataset
    samples = len(dataset.train_inputs)
    if not isinstance(owners, Tensor) or owners.dtype != torch.int64 or tuple(owners.shape) != (samples,):
        what = described(owners) if isinstance(owners, Tensor) else f"a {type(owners).__name__}"
        raise InputError(f"has {what} as owners", allowed=f"int64 [{samples}]")
    return replace(dataset, owners=owners.cpu())
