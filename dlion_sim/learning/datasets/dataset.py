"""Samples in memory, their task, and their way from bytes to what networks take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
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


@dataclass(frozen=True)
class NormalisedImages:
    """Images [B, C, H, W] from 0 to `scale`, mostly uint8, as float32 with mean 0 and deviation 1.

    `mean` and `std` of each channel are those of the training images after division by `scale`.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    scale: int = 255

    def __call__(self, images: Tensor) -> Tensor:
        """New images of the same shape; `images` are left as they are."""
        mean, std = _statistics(self, images.device)
        # Channels last is the order of memory in which convolutions run fastest.
        return images.to(torch.float32, copy=True, memory_format=torch.channels_last).sub_(mean).div_(std)


# Kept, since nothing may come from main memory while a CUDA graph is recorded.
@cache
@torch.inference_mode(False)
def _statistics(images: NormalisedImages, device: torch.device) -> Tensor:
    """Mean and deviation [2, C, 1, 1] of the images before division by `scale`."""
    statistics = torch.tensor([images.mean, images.std], device=device) * images.scale
    return statistics[:, :, None, None]
