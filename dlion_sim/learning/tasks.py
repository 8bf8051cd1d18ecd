"""Tasks: losses and metrics of models."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from dlion_sim.metric import ACCURACY, PERPLEXITY, RMSE, Metric

_MOST_NATS = 700.0
"""Beyond this loss, its exponential overflows."""


class ClassScore(NamedTuple):
    """The accuracy on the samples of one class."""

    number: int
    """Of the class."""
    share: float
    """Of this class among the samples that arrive at that time."""
    samples: int
    accuracy: float


@dataclass(frozen=True)
class Score:
    """The mean loss over samples, and the task's metric."""

    loss: float
    metric: float
    classes: tuple[ClassScore, ...] = ()
    """Of each class, if requested."""


class Task(ABC):
    """The comparison of a model's outputs with the targets of its samples.

    Outputs and targets have the batch B as their first dimension. All methods are pure functions of torch's operators,
    for `torch.func.vmap`.
    """

    metric: ClassVar[Metric]
    """The metric of evaluations."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Width of a model's last layer."""

    @abstractmethod
    def output_shape(self, targets: Tensor) -> tuple[int, ...]:
        """The shape that outputs must have for these targets."""

    @abstractmethod
    def fault(self, targets: Tensor) -> str | None:
        """The reason why these targets cannot be learned, if there is one."""

    @abstractmethod
    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of each sample [B]; that of a batch is their mean."""

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The sum of the losses, a scalar."""
        return self.losses(outputs, targets).sum()

    @abstractmethod
    def measure(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Sums [K] over the samples, as float64, additive over batches: the loss, and those for the metric."""

    @abstractmethod
    def score(self, sums: Sequence[float], samples: int) -> Score:
        """From the sums of `measure` over so many samples."""


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


@dataclass(frozen=True)
class NextToken(Task):
    """Logits [B, T, vocabulary] for targets [B, T], int64: the token after each one of a sequence.

    A sample is a sequence. Its loss is the mean cross-entropy over its tokens; the metric is perplexity, e to the mean
    loss.
    """

    vocabulary: int
    metric: ClassVar[Metric] = PERPLEXITY

    @property
    def outputs(self) -> int:
        return self.vocabulary

    def output_shape(self, targets: Tensor) -> tuple[int, ...]:
        return *targets.shape, self.vocabulary

    def fault(self, targets: Tensor) -> str | None:
        """Any targets but a token at each position."""
        if targets.dtype != torch.int64 or targets.dim() != 2:
            return f"must be int64 [N, T], not {described(targets)}"
        return outside(targets, self.vocabulary)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy (nats) over each sequence [B]."""
        each = cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none")
        return each.view_as(targets).mean(dim=1)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="sum") / targets.shape[1]

    def measure(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return self.loss(outputs, targets).double().view(1)

    def score(self, sums: Sequence[float], samples: int) -> Score:
        """Mean loss and perplexity, or infinity if that overflows."""
        loss = sums[0] / samples
        return Score(loss, math.inf if loss > _MOST_NATS else math.exp(loss))


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


def described(tensor: Tensor) -> str:
    """Type and shape, e.g. "float32 [100, 3]"."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def outside(targets: Tensor, count: int) -> str | None:
    """The fault of targets that are not all from 0 to `count` - 1, if there is one."""
    least, most = targets.aminmax()
    if least >= 0 and most < count:
        return None
    return f"must be from 0 to {count - 1}, not {least} to {most}"
