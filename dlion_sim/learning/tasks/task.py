"""What learning asks of a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from torch import Tensor

from dlion_sim.metric import Metric


class ClassScore(NamedTuple):
    """How well the samples of one class are told."""

    number: int
    """Of the class."""
    share: float
    """Of what comes at the time, this class."""
    samples: int
    accuracy: float


@dataclass(frozen=True)
class Score:
    """The mean loss over samples, and the task's metric."""

    loss: float
    metric: float
    classes: tuple[ClassScore, ...] = ()
    """Of each class by itself, where that was asked for."""


class Task(ABC):
    """How outputs of a model are held against the targets of its samples.

    Outputs and targets have the batch B as their first dimension. All methods are functions of what they are given
    alone, of torch's operators, which `torch.func.vmap` can take.
    """

    metric: ClassVar[Metric]
    """What tells how good a model is."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Width of a model's last layer."""

    @abstractmethod
    def output_shape(self, targets: Tensor) -> tuple[int, ...]:
        """The shape that outputs must have for these targets."""

    @abstractmethod
    def fault(self, targets: Tensor) -> str | None:
        """Why these targets cannot be learned, if so."""

    @abstractmethod
    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of each sample [B]; that of a batch is their mean."""

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The sum of the losses, a scalar."""
        return self.losses(outputs, targets).sum()

    @abstractmethod
    def measure(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Sums [K] over the samples, as float64, which add up over batches: the loss, and what the metric needs."""

    @abstractmethod
    def score(self, sums: Sequence[float], samples: int) -> Score:
        """From the sums of `measure` over so many samples."""
