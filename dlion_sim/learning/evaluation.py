"""How well replicas do on the test set, or on validation samples."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dlion_sim.learning.datasets import Dataset
from dlion_sim.learning.layers import Kernels
from dlion_sim.learning.partition import Indices
from dlion_sim.learning.pool import ModelPool
from dlion_sim.learning.replica import Replica, look_at

_BATCH = 100
"""Images of one forward pass: few enough for their activations to stay near the core."""


@dataclass(frozen=True)
class Score:
    """Mean cross-entropy over samples, and the share of them that is classified right (0 to 1)."""

    loss: float
    accuracy: float


class Evaluator:
    """Scores replicas of `model` on the test set, or in its place on training samples that are held out for it.

    Scores do not depend, to the bit, on the number of `threads` (default: as many as torch uses). `kernels` are
    those of a CPU.
    """

    def __init__(
        self,
        model: nn.Module,
        dataset: Dataset,
        device: torch.device,
        *,
        validation: Indices | None = None,
        threads: int | None = None,
        kernels: Kernels = "fast",
    ) -> None:
        self._dataset = dataset.to(device)
        self._images, self._labels = self._dataset.test_images, self._dataset.test_labels
        if validation is not None:
            held_out = torch.from_numpy(validation).to(device)
            self._images, self._labels = self._dataset.train_images[held_out], self._dataset.train_labels[held_out]
        self._pool = ModelPool(model, device, threads, kernels)

    def evaluate(self, replicas: Sequence[Replica], samples: int | None = None) -> list[Score]:
        """The score of each replica as it is now, on the whole set, or on its first `samples`.

        Replicas whose parameters are equal to the bit are evaluated once.
        """
        # Replicas that share their parameters need not be looked at to know that they are equal.
        parameters = {id(replica.parameters): replica.parameters for replica in replicas}
        digest_of = {number: _digest(each) for number, each in parameters.items()}
        digests = [digest_of[id(replica.parameters)] for replica in replicas]
        distinct = dict(zip(digests, replicas, strict=True))
        samples = min(samples or len(self._labels), len(self._labels))
        batches = [slice(start, min(start + _BATCH, samples)) for start in range(0, samples, _BATCH)]
        work = [(replica, batch) for replica in distinct.values() for batch in batches]
        sums = torch.stack(self._pool.map(self._batch, work)).view(len(distinct), len(batches), 2).sum(dim=1)
        scores = {
            digest: Score(loss / samples, correct / samples)
            for digest, (loss, correct) in zip(distinct, sums.tolist(), strict=True)
        }
        return [scores[digest] for digest in digests]

    def close(self) -> None:
        """End the threads."""
        self._pool.close()

    @torch.inference_mode()
    def _batch(self, model: nn.Module, work: tuple[Replica, slice]) -> Tensor:
        """Summed loss and number of right answers [2, float64] over the images of one pass."""
        replica, batch = work
        images, labels = self._images[batch], self._labels[batch]
        look_at(model, replica)
        logits = model(self._dataset.normalise(images))
        loss = cross_entropy(logits, labels, reduction="sum")
        return torch.stack([loss.double(), (logits.argmax(dim=1) == labels).sum().double()])


def _digest(parameters: Tensor) -> bytes:
    return hashlib.sha256(parameters.cpu().numpy().data).digest()
