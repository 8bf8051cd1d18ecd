"""How well replicas do on the test set, or on validation samples."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dlion_sim.learning.datasets import Dataset
from dlion_sim.learning.layers import Kernels
from dlion_sim.learning.partition import Indices
from dlion_sim.learning.pool import ModelPool
from dlion_sim.learning.replica import Replica, look_at
from dlion_sim.learning.tasks import Score

_BATCH = 100
"""Samples of one forward pass: few enough for their activations to stay near the core."""


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
        self._inputs, self._targets = self._dataset.test_inputs, self._dataset.test_targets
        if validation is not None:
            held_out = torch.from_numpy(validation).to(device)
            self._inputs, self._targets = self._dataset.train_inputs[held_out], self._dataset.train_targets[held_out]
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
        samples = min(samples or len(self._targets), len(self._targets))
        batches = [slice(start, min(start + _BATCH, samples)) for start in range(0, samples, _BATCH)]
        work = [(replica, batch) for replica in distinct.values() for batch in batches]
        sums = torch.stack(self._pool.map(self._batch, work)).view(len(distinct), len(batches), -1).sum(dim=1)
        task = self._dataset.task
        scores = {digest: task.score(each, samples) for digest, each in zip(distinct, sums.tolist(), strict=True)}
        return [scores[digest] for digest in digests]

    def close(self) -> None:
        """End the threads."""
        self._pool.close()

    @torch.inference_mode()
    def _batch(self, model: nn.Module, work: tuple[Replica, slice]) -> Tensor:
        """The task's sums [K, float64] over the samples of one pass."""
        replica, batch = work
        look_at(model, replica)
        outputs = model(self._dataset.transform(self._inputs[batch]))
        return self._dataset.task.measure(outputs, self._targets[batch])


def _digest(parameters: Tensor) -> bytes:
    return hashlib.sha256(parameters.cpu().numpy().data).digest()
