"""Regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dlion_sim.learning.tasks.task import Score, Task, described
from dlion_sim.metric import RMSE, Metric


@dataclass(frozen=True)
class Regression(Task):
    """Numbers [B, width] for float32 targets [B, width], or [B] if the width is 1.

    The loss is the mean squared error over the numbers of a sample; the metric its root over all (RMSE), in the
    targets' unit.
    """

    width: int = 1
    metric: ClassVar[Metric] = RMSE

    @property
    def outputs(self) -> int:
        return self.width

    def output_shape(self, targets: Tensor) -> tuple[int, ...]:
        return len(targets), self.width

    def fault(self, targets: Tensor) -> str | None:
        """Any targets but `width` finite numbers per sample."""
        shapes = [(self.width,), *([()] if self.width == 1 else [])]
        if targets.dtype != torch.float32 or tuple(targets.shape[1:]) not in shapes:
            return f"must be float32 [N, {self.width}]{' or [N]' * (self.width == 1)}, not {described(targets)}"
        return None if bool(targets.isfinite().all()) else "must be finite"

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean squared error over the numbers of each sample [B]."""
        return (outputs - targets.reshape(outputs.shape)).square().mean(dim=1)

    def measure(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return self.losses(outputs, targets).double().sum().view(1)

    def score(self, sums: Sequence[float], samples: int) -> Score:
        """Mean squared error and its root."""
        loss = sums[0] / samples
        return Score(loss, math.sqrt(loss))
