"""Evaluation of replicas on test or validation samples, and on arrivals of a stream."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from dlion_sim.learning.datasets import Dataset
from dlion_sim.learning.layers import Kernels
from dlion_sim.learning.moment import Moment
from dlion_sim.learning.partition import Indices
from dlion_sim.learning.pool import ModelPool
from dlion_sim.learning.replica import Replica, look_at
from dlion_sim.learning.tasks import Classification, Score

_BATCH = 100
"""Samples of one forward pass: few enough for their activations to fit into a core's caches."""

_Measure = Callable[[Tensor, Tensor], Tensor]
"""Sums [K, float64] from outputs and targets."""


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
            self._inputs, self._targets = self._training_samples(validation)
        self._pool = ModelPool(model, device, threads, kernels)

    def evaluate(
        self, replicas: Sequence[Replica], samples: int | None = None, moment: Moment | None = None
    ) -> list[Score]:
        """The score of each replica as it is now, on the whole set, or on its first `samples`.

        At a `moment` of a stream, which is for classification alone, they are on the set as it would come then: inputs
        changed, classes weighted, each scored by itself too. Replicas whose parameters are equal to the bit are
        evaluated once.
        """
        # Replicas that share their parameters are equal.
        parameters = {id(replica.parameters): replica.parameters for replica in replicas}
        digest_of = {number: _digest(each) for number, each in parameters.items()}
        digests = [digest_of[id(replica.parameters)] for replica in replicas]
        distinct = dict(zip(digests, replicas, strict=True))
        samples = min(samples or len(self._targets), len(self._targets))
        inputs, targets, task = self._inputs[:samples], self._targets[:samples], self._dataset.task
        if moment is None:
            sums = self._sums(list(distinct.values()), inputs, targets, task.measure)
            scores = [task.score(each, samples) for each in sums]
        else:
            assert isinstance(task, Classification)
            sums = self._sums(list(distinct.values()), moment.change(inputs), targets, task.measure_by_class)
            scores = [moment.score(each) for each in sums]
        score_of = dict(zip(distinct, scores, strict=True))
        return [score_of[digest] for digest in digests]

    def score(self, replica: Replica, samples: Indices) -> Score:
        """That of a replica as it is now on some training samples."""
        (sums,) = self._sums([replica], *self._training_samples(samples), self._dataset.task.measure)
        return self._dataset.task.score(sums, len(samples))

    def close(self) -> None:
        self._pool.close()

    def _training_samples(self, samples: Indices) -> tuple[Tensor, Tensor]:
        indices = torch.from_numpy(samples).to(self._dataset.train_targets.device)
        return self._dataset.train_inputs[indices], self._dataset.train_targets[indices]

    def _sums(
        self, replicas: Sequence[Replica], inputs: Tensor, targets: Tensor, measure: _Measure
    ) -> list[list[float]]:
        parts = zip(torch.split(inputs, _BATCH), torch.split(targets, _BATCH), strict=True)
        batches = [(*part, measure) for part in parts]
        sums = torch.stack(self._pool.map(self._batch, [(replica, batch) for replica in replicas for batch in batches]))
        totals: list[list[float]] = sums.view(len(replicas), len(batches), -1).sum(dim=1).tolist()
        return totals

    @torch.inference_mode()
    def _batch(self, model: nn.Module, work: tuple[Replica, tuple[Tensor, Tensor, _Measure]]) -> Tensor:
        replica, (inputs, targets, measure) = work
        look_at(model, replica)
        return measure(model(self._dataset.transform(inputs)), targets)


def _digest(parameters: Tensor) -> bytes:
    return hashlib.sha256(parameters.cpu().numpy().data).digest()
