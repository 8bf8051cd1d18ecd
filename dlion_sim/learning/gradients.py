"""Gradients of replicas, computed concurrently in the background."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call

from dlion_sim.learning.datasets import Dataset
from dlion_sim.learning.flat import Layout
from dlion_sim.learning.layers import Kernels
from dlion_sim.learning.pool import ModelPool
from dlion_sim.learning.recorded import is_recordable, recorded
from dlion_sim.learning.replica import Replica, look_at

_PART = 256
"""Samples of one forward and backward pass: activations of larger ones no longer fit a core's caches."""

_OFTEN = 16
"""Gradients of a batch size before its operators are recorded, which takes as long as some ten gradients."""


@dataclass(frozen=True, eq=False)
class Ticket:
    """A submitted gradient: of `replica` in `version`, over `samples` [B].

    Pickled, it keeps an existing answer; without one, it must be submitted again.
    """

    replica: Replica
    version: int
    samples: npt.NDArray[np.int64]
    answer: Future[tuple[float, Tensor]]

    def read(self) -> tuple[float, Tensor]:
        """Wait for the answer. Raises RuntimeError if the replica was written since it was submitted."""
        if self.replica.version != self.version:
            raise RuntimeError(
                f"a replica was written before its gradient was read: submitted at version {self.version}, "
                f"now {self.replica.version}"
            )
        return self.answer.result()

    def __getstate__(self) -> tuple[Replica, int, npt.NDArray[np.int64], tuple[float, Tensor] | None]:
        return self.replica, self.version, self.samples, self.answer.result() if self.answer.done() else None

    def __setstate__(self, state: tuple[Replica, int, npt.NDArray[np.int64], tuple[float, Tensor] | None]) -> None:
        replica, version, samples, result = state
        answer: Future[tuple[float, Tensor]] = Future()
        if result is not None:
            answer.set_result(result)
        self.__dict__.update(replica=replica, version=version, samples=samples, answer=answer)


class GradientExecutor:
    """Computes the mean loss over a batch and its gradient, for any number of replicas of `model`.

    Submitted gradients are computed in the background, concurrently. Results do not depend, to the bit, on what is
    computed concurrently or on the number of `threads` (default: that of torch). Gradients of at most `at_once` samples
    are computed by the thread that submits them, those of frequent batch sizes by recorded operators if the model
    allows it. `kernels` are those of a CPU.
    """

    def __init__(
        self,
        model: nn.Module,
        dataset: Dataset,
        device: torch.device,
        *,
        threads: int | None = None,
        at_once: int = 0,
        kernels: Kernels = "fast",
    ) -> None:
        self._dataset = dataset.to(device)
        self._at_once = at_once
        self._layout = Layout.of(model)
        self._program = cache(self._record)
        self._computed_at_once: Counter[int] = Counter()
        """Gradients by batch size."""
        self._pool = ModelPool(model, device, threads, kernels)

    def submit(self, replica: Replica, indices: npt.NDArray[np.int64]) -> Ticket:
        """Submit the gradient of `replica` over the training samples `indices` [B].

        The replica must not be written until the result was read.
        """
        compute = self._pool.call if len(indices) <= self._at_once else self._pool.submit
        return Ticket(replica, replica.version, indices, compute(self._gradient, (replica, indices)))

    def result(self, ticket: Ticket) -> tuple[float, Tensor]:
        """The loss and the gradient [P], which belongs to the caller.

        Raises RuntimeError if the replica was written since `submit`.
        """
        return ticket.read()

    def close(self) -> None:
        self._program.cache_clear()
        self._pool.close()

    def _gradient(self, model: nn.Module, work: tuple[Replica, npt.NDArray[np.int64]]) -> tuple[float, Tensor]:
        replica, samples = work
        indices = torch.from_numpy(samples).to(self._dataset.train_targets.device)
        if len(samples) <= min(self._at_once, _PART):
            self._computed_at_once[len(samples)] += 1
            is_frequent = self._computed_at_once[len(samples)] > _OFTEN
            if is_frequent and (program := self._program(model, len(samples))):
                loss, gradient = program(replica.parameters, indices)
                return loss.item(), gradient
        variables = look_at(model, replica)
        parts = (self._part(model, variables, part, len(indices)) for part in torch.split(indices, _PART))
        total_loss, total = next(parts)
        for loss, gradient in parts:
            total_loss += loss
            total += gradient
        return total_loss.item(), total.to(replica.parameters.device)

    def _record(self, model: nn.Module, batch_size: int) -> Callable[..., Sequence[Tensor]] | None:
        """The loss and the gradient [P] of parameters [P] over so many samples, by the model's recorded operators.

        None if they depend on values.
        """
        if not is_recordable(model):
            return None

        def compute(parameters: Tensor, indices: Tensor) -> Sequence[Tensor]:
            variables = [view.detach().requires_grad_() for view in self._layout.views(parameters)]
            named = dict(zip(self._layout.names, variables, strict=True))
            return self._part(partial(functional_call, model, named), variables, indices, batch_size)

        return recorded(compute, torch.zeros(self._layout.size), torch.zeros(batch_size, dtype=torch.int64))

    def _part(
        self, model: Callable[[Tensor], Tensor], variables: Sequence[Tensor], indices: Tensor, batch_size: int
    ) -> tuple[Tensor, Tensor]:
        """The contribution of the samples `indices` to the means over a batch."""
        outputs = model(self._dataset.transform(self._dataset.train_inputs[indices]))
        loss = self._dataset.task.loss(outputs, self._dataset.train_targets[indices]) / batch_size
        gradients = torch.autograd.grad(loss, variables)
        return loss.detach(), torch.cat([gradient.reshape(-1) for gradient in gradients])
