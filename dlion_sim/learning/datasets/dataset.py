"""Samples in memory, and their task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dlion_sim.learning.tasks import Classification, Task

InputKind = Literal["images", "numbers", "tokens"]
"""images: floats [C, H, W], or bytes of them; numbers: floats of any other shape; tokens: int64."""


def as_they_are(inputs: Tensor) -> Tensor:
    """The inputs."""
    return inputs


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples, inputs and targets [N, ...] each, split into a training set and a test set.

    Inputs become what models take by `transform`, one batch [B, ...] at a time: a function of that batch alone.
    """

    train_inputs: Tensor
    train_targets: Tensor
    test_inputs: Tensor
    test_targets: Tensor
    task: Task = None  # type: ignore[assignment]
    """May be omitted in a user's own dataset, if it follows from the targets."""
    transform: Callable[[Tensor], Tensor] = as_they_are
    owners: Tensor | None = None
    """The natural owner of each training sample, int64 [N]: a writer, a speaker, a site."""
    name: str = ""

    @cached_property
    def sample(self) -> Tensor:
        """The first training sample as a model's input [1, ...]."""
        return self.transform(self.train_inputs[:1])

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of a sample as a model's input: [C, H, W] of an image."""
        return tuple(self.sample.shape[1:])

    @property
    def input_kind(self) -> InputKind:
        if not self.sample.is_floating_point():
            return "tokens"
        return "images" if len(self.input_shape) == 3 else "numbers"

    @property
    def labels(self) -> npt.NDArray[np.int64] | None:
        """The class of each training sample [N], for classification."""
        return self.train_targets.cpu().numpy() if isinstance(self.task, Classification) else None

    def to(self, device: torch.device) -> Dataset:
        """The same data on `device`, without a copy of what is there."""
        return replace(
            self,
            train_inputs=self.train_inputs.to(device),
            train_targets=self.train_targets.to(device),
            test_inputs=self.test_inputs.to(device),
            test_targets=self.test_targets.to(device),
        )
