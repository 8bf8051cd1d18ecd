"""Gradients of many replicas by one vectorised program: on a GPU, and of tiny models on a CPU."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from dlion_sim.learning.accelerator import Function, GraphRecorder, is_accelerator
from dlion_sim.learning.datasets import Dataset
from dlion_sim.learning.flat import Layout, copied
from dlion_sim.learning.gradients import GradientExecutor, Ticket
from dlion_sim.learning.layers import Kernels
from dlion_sim.learning.pool import is_tiny
from dlion_sim.learning.process import exact_cuda, one_core
from dlion_sim.learning.replica import Replica

# All are powers of two, as are the shapes of programs: padding never exceeds them.
_LEAST, _PART = 16, 256
"""Minimum padded and maximum number of samples of a part of a batch."""

_ROWS = 64
"""Maximum parts of a program: each has a replica's parameters and gradient in memory."""

_SAMPLES = 4096
"""Maximum samples of a program: the activations of all are in memory at once."""

_PROGRAMS = 16
"""Programs that are cached, with their buffers; the least recently used one is dropped."""

_AT_ONCE = 2**21
"""Maximum samples times parameters of a tiny model that the simulating thread computes itself: in another one operators
would mostly wait for the interpreter's lock."""

_MANY = 32
"""Minimum replicas of a tiny model for which fusing is faster on a CPU."""


class FusedGradientExecutor:
    """Computes the mean loss over a batch and its gradient, for any number of replicas of `model`.

    Submitted gradients are pending until the result of one is requested; then all are computed at once, vectorised over
    replicas by `torch.func.vmap`, which turns convolutions into grouped ones and matrix products into batched ones.
    Batches are cut into parts and padded to few shapes; on CUDA the program of each shape is recorded as a CUDA graph
    at first use.

    On a GPU, rounding depends on what is computed together: it changes a gradient by about 1e-6 of its norm, and by up
    to 1e-2 where it decides the sign before a ReLU or the maximum of a pool, as between any two float32 programs. On a
    CPU, a model of dense layers has the same gradients to the bit, whatever is computed together.
    """

    def __init__(self, model: nn.Module, dataset: Dataset, device: torch.device) -> None:
        self._settings = ExitStack()
        self._device = device
        self._dataset = dataset.to(device)
        self._model = copy.deepcopy(model).to(device)
        self._layout = Layout.of(model)
        self._waiting: list[Ticket] = []
        self._program = lru_cache(_PROGRAMS)(self._new_program)
        self._record: Callable[[Function], Function] = _on_one_core
        if is_accelerator(device):
            self._settings.enter_context(exact_cuda())
            self._record = GraphRecorder(device)

    @property
    def takes_model(self) -> bool:
        """Whether the model can be vectorised: a user's own may branch on values, or write into its inputs."""
        parameters, weights = (torch.zeros(2, size, device=self._device) for size in (self._layout.size, 1))
        try:
            self._compute(parameters, torch.zeros(2, 1, dtype=torch.int64, device=self._device), weights)
        except Exception:  # any error of an operator
            return False
        return True

    def submit(self, replica: Replica, indices: npt.NDArray[np.int64]) -> Ticket:
        """Submit the gradient of `replica` over the training samples `indices` [B].

        The replica must not be written until the result was read.
        """
        ticket = Ticket(replica, replica.version, indices, Future())
        self._waiting.append(ticket)
        return ticket

    def result(self, ticket: Ticket) -> tuple[float, Tensor]:
        """The loss and the gradient [P], which belongs to the caller.

        Raises RuntimeError if the replica was written since `submit`.
        """
        if not ticket.answer.done():
            self._compute_waiting()
        return ticket.read()

    def close(self) -> None:
        """Free the programs' memory; pending gradients are dropped."""
        for ticket in self._waiting:
            ticket.answer.cancel()
        self._waiting.clear()
        self._program.cache_clear()
        self._settings.close()

    def _compute_waiting(self) -> None:
        """Compute all pending gradients, by as few programs as bounds and paddings allow."""
        done: list[_Part] = []
        losses: list[Tensor] = []
        gradients: dict[Ticket, Tensor] = {}
        for parts in _together([part for ticket in self._waiting for part in _parts(ticket)]):
            part_gradients, part_losses = self._program(_power_of_two(len(parts)), parts[0].padded)(parts)
            done += parts
            losses.append(part_losses.clone())
            for part, gradient in zip(parts, part_gradients, strict=True):
                if part.ticket in gradients:
                    gradients[part.ticket] += gradient
                else:
                    # A copy of each row: one that stays unread would keep the others in memory.
                    gradients[part.ticket] = copied(gradient)
        totals = dict.fromkeys(gradients, 0.0)
        for part, loss in zip(done, torch.cat(losses).tolist(), strict=True):
            totals[part.ticket] += loss
        for ticket, gradient in gradients.items():
            ticket.answer.set_result((totals[ticket], gradient))
        self._waiting.clear()

    def _new_program(self, rows: int, samples: int) -> _Program:
        parameters = torch.zeros(rows, self._layout.size, device=self._device)
        indices = torch.zeros(rows, samples, dtype=torch.int64, device=self._device)
        weights = torch.zeros(rows, samples, device=self._device)
        return _Program(parameters, indices, weights, self._record(lambda: self._compute(parameters, indices, weights)))

    def _compute(self, parameters: Tensor, indices: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients [n, P] and losses [n] at `parameters` [n, P] over the samples `indices` [n, b]."""
        inputs = self._dataset.transform(self._dataset.train_inputs[indices.flatten()])
        inputs, targets = inputs.view(*indices.shape, *inputs.shape[1:]), self._dataset.train_targets[indices]
        gradients, losses = vmap(grad_and_value(self._loss))(parameters, inputs, targets, weights)
        return gradients, losses

    def _loss(self, parameters: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Weighted sum of the losses of one replica with `parameters` [P]."""
        variables = dict(zip(self._layout.names, self._layout.views(parameters), strict=True))
        outputs = functional_call(self._model, variables, (inputs,))
        return (self._dataset.task.losses(outputs, targets) * weights).sum()


@dataclass(frozen=True)
class _Part:
    """Samples of a ticket's batch, each with the `weight` in the batch's means."""

    ticket: Ticket
    samples: npt.NDArray[np.int64]
    weight: float

    @property
    def padded(self) -> int:
        return max(_LEAST, _power_of_two(len(self.samples)))


class _Program:
    """Gradients of n parts of b samples each, by a function that reads its inputs from these buffers."""

    def __init__(self, parameters: Tensor, indices: Tensor, weights: Tensor, run: Function) -> None:
        self._parameters = parameters
        self._indices = indices
        self._weights = weights
        self._run = run

    def __call__(self, parts: Sequence[_Part]) -> tuple[Tensor, Tensor]:
        """Gradients [m, P] and losses [m] of m <= n parts, in memory that the next program may write."""
        indices = np.zeros(self._indices.shape, np.int64)
        weights = np.zeros(self._weights.shape, np.float32)
        for row, part in enumerate(parts):
            # Padding repeats a sample of the part: if its loss is infinite, so is the true one.
            indices[row] = part.samples[0]
            indices[row, : len(part.samples)] = part.samples
            weights[row, : len(part.samples)] = part.weight
        torch.stack([part.ticket.replica.parameters for part in parts], out=self._parameters[: len(parts)])
        self._indices.copy_(torch.from_numpy(indices))
        self._weights.copy_(torch.from_numpy(weights))
        gradients, losses = self._run()
        return gradients[: len(parts)], losses[: len(parts)]


def _on_one_core(function: Function) -> Function:
    """The function on one core: on several, rounding would depend on the shape."""

    def run() -> tuple[Tensor, Tensor]:
        with one_core():
            return function()

    return run


def _parts(ticket: Ticket) -> Iterator[_Part]:
    for start in range(0, len(ticket.samples), _PART):
        yield _Part(ticket, ticket.samples[start : start + _PART], 1 / len(ticket.samples))


def _together(parts: list[_Part]) -> Iterator[list[_Part]]:
    """The parts of each program: of one padded size, so that at most half of the work is padding."""
    for samples, group in groupby(sorted(parts, key=lambda part: part.padded), key=lambda part: part.padded):
        same, rows = list(group), min(_ROWS, _SAMPLES // samples)
        for start in range(0, len(same), rows):
            yield same[start : start + rows]


def _power_of_two(count: int) -> int:
    """The least power of two that is `count` or more."""
    return 1 << (count - 1).bit_length()


def gradient_executor(
    model: nn.Module,
    dataset: Dataset,
    device: torch.device,
    *,
    replicas: int,
    threads: int | None = None,
    kernels: Kernels = "fast",
) -> GradientExecutor | FusedGradientExecutor:
    """The fastest executor for so many replicas of `model` on `device`.

    `threads` and `kernels` are those of a CPU.
    """
    on_gpu = is_accelerator(device)
    tiny = not on_gpu and is_tiny(model)
    if on_gpu or (tiny and replicas >= _MANY):
        fused = FusedGradientExecutor(model, dataset, device)
        if fused.takes_model:
            return fused
        fused.close()
    at_once = _AT_ONCE // max(1, Layout.of(model).size) if tiny else 0
    return GradientExecutor(model, dataset, device, threads=threads, at_once=at_once, kernels=kernels)
