"""How well replicas do on the test set."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dlion_sim.learning.datasets import Dataset
from dlion_sim.learning.flat import Replica, look_at
from dlion_sim.learning.pool import ModelPool

_BATCH = 100
"""Test images of one forward pass: few enough for their activations to stay near the core."""


@dataclass(frozen=True)
class Score:
    """Mean cross-entropy over the test set, and the share of it that is classified right (0 to 1)."""

    loss: float
    accuracy: float


class Evaluator:
    """Scores replicas of `model` on the whole test set.

    Scores do not depend, to the bit, on the number of `threads` (default: as many as torch uses).
    """

    def __init__(self, model: nn.Module, dataset: Dataset, device: torch.device, *, threads: int | None = None) -> None:
        self._dataset = dataset.to(device)
        self._pool = ModelPool(model, device, threads)

    def evaluate(self, replicas: Sequence[Replica]) -> list[Score]:
        """The score of each replica as it is now; replicas whose parameters are equal to the bit are evaluated once."""
        digests = [hashlib.sha256(replica.parameters.cpu().numpy().data).digest() for replica in replicas]
        distinct = dict(zip(digests, replicas, strict=True))
        samples = len(self._dataset.test_labels)
        starts = range(0, samples, _BATCH)
        work = [(replica, start) for replica in distinct.values() for start in starts]
        sums = torch.stack(self._pool.map(self._batch, work)).view(len(distinct), len(starts), 2).sum(dim=1)
        scores = {
            digest: Score(loss / samples, correct / samples)
            for digest, (loss, correct) in zip(distinct, sums.tolist(), strict=True)
        }
        return [scores[digest] for digest in digests]

    def close(self) -> None:
        """End the threads."""
        self._pool.close()

    @torch.inference_mode()
    def _batch(self, model: nn.Module, work: tuple[Replica, int]) -> Tensor:
        """Summed loss and number of right answers [2, float64] over the test images of one pass."""
        replica, start = work
        images = self._dataset.test_images[start : start + _BATCH]
        labels = self._dataset.test_labels[start : start + _BATCH]
        look_at(model, replica)
        logits = model(self._dataset.normalise(images))
        loss = cross_entropy(logits, labels, reduction="sum")
        return torch.stack([loss.double(), (logits.argmax(dim=1) == labels).sum().double()])
