"""The interface of tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from torch import Tensor

from dlion_sim.metric import Metric


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


def described(tensor: Tensor) -> str:
    """Type and shape, e.g. "float32 [100, 3]"."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def outside(targets: Tensor, count: int) -> str | None:
    """The fault of targets that are not all from 0 to `count` - 1, if there is one."""
    least, most = targets.aminmax()
    if least >= 0 and most < count:
        return None
    return f"must be from 0 to {count - 1}, not {least} to {most}"
