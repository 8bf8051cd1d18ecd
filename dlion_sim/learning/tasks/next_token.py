"""Next-token prediction: language models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from dlion_sim.learning.tasks.task import Score, Task, described, outside
from dlion_sim.metric import PERPLEXITY, Metric

_MOST_NATS = 700.0
"""Beyond this loss, its exponential overflows."""


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
