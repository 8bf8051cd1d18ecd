"""Classification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from dlion_sim.learning.tasks.task import Score, Task, described, outside
from dlion_sim.metric import ACCURACY, Metric


@dataclass(frozen=True)
class Classification(Task):
    """Logits [B, classes] for targets [B], int64 from 0. The loss is the cross-entropy, the metric accuracy."""

    classes: int
    metric: ClassVar[Metric] = ACCURACY

    @property
    def outputs(self) -> int:
        return self.classes

    def output_shape(self, targets: Tensor) -> tuple[int, ...]:
        return len(targets), self.classes

    def fault(self, targets: Tensor) -> str | None:
        """Any targets but one class per sample."""
        if targets.dtype != torch.int64 or targets.dim() != 1:
            return f"must be int64 [N], not {described(targets)}"
        return outside(targets, self.classes)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy (nats) [B]."""
        return cross_entropy(outputs, targets, reduction="none")

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(outputs, targets, reduction="sum")

    def measure(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Summed loss and number of right answers [2]."""
        right = (outputs.argmax(dim=1) == targets).sum()
        return torch.stack([self.loss(outputs, targets).double(), right.double()])

    def measure_by_class(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """For each class: summed loss, number of right answers, number of samples [classes * 3]."""
        right = outputs.argmax(dim=1) == targets
        each = torch.stack([self.losses(outputs, targets), right, torch.ones_like(right)], dim=1)
        # A product: its order of summation is deterministic on a GPU too.
        return (one_hot(targets, self.classes).double().T @ each.double()).flatten()

    def score(self, sums: Sequence[float], samples: int) -> Score:
        """Mean loss and accuracy."""
        loss, right = sums
        return Score(loss / samples, right / samples)
