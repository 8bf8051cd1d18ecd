"""Threads that compute with copies of one model."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import cached_property
from itertools import chain
from typing import TypeVar

import torch
from torch import nn

from dlion_sim.learning.accelerator import is_accelerator
from dlion_sim.learning.layers import Kernels, with_kernels
from dlion_sim.learning.process import exact_cuda, kept_memory, one_core, returned_memory

_TINY = 2**16
"""Maximum parameters of a tiny model."""
Item = TypeVar("Item")
Result = TypeVar("Result")


class ModelPool:
    """Threads that each own a copy of a model and use one core: on a CPU as many as torch uses, on a GPU one.

    On a CPU the copies use `kernels`, whose results may differ from the model's by rounding. Small batches are faster
    in parallel than with each operator split among cores; as none is split, a result depends neither on the number of
    threads nor on other computations.
    """

    def __init__(
        self, model: nn.Module, device: torch.device, threads: int | None = None, kernels: Kernels = "fast"
    ) -> None:
        self._settings = ExitStack()
        self._settings.enter_context(returned_memory() if is_tiny(model) else kept_memory())
        self._model = model
        self._device = device
        self._kernels: Kernels = kernels if device.type == "cpu" else "torch"
        self._own = threading.local()
        # In any case: it fixes the count of the calling thread, which otherwise follows that of the pool's threads.
        cores = torch.get_num_threads()
        if is_accelerator(device):
            self._settings.enter_context(exact_cuda())
            threads = 1
        self._threads = ThreadPoolExecutor(threads or cores, "model", initializer=self._prepare)

    def submit(self, function: Callable[[nn.Module, Item], Result], item: Item) -> Future[Result]:
        """Call `function` with a model copy and `item`, in the background."""
        return self._threads.submit(lambda: function(self._own.model, item))

    def call(self, function: Callable[[nn.Module, Item], Result], item: Item) -> Future[Result]:
        """As `submit`, but the calling thread computes it, on one core, before this returns."""
        answer: Future[Result] = Future()
        try:
            with one_core():
                answer.set_result(function(self._callers, item))
        except Exception as error:
            answer.set_exception(error)
        return answer

    def map(self, function: Callable[[nn.Module, Item], Result], items: Iterable[Item]) -> list[Result]:
        """`function` of a model copy and each item, in the order of the items."""
        return [answer.result() for answer in [self.submit(function, item) for item in items]]

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._settings.close()

    def _prepare(self) -> None:
        torch.set_num_threads(1)
        self._own.model = self._copy_of_model()

    @cached_property
    def _callers(self) -> nn.Module:
        """The calling thread's copy."""
        return self._copy_of_model()

    def _copy_of_model(self) -> nn.Module:
        return with_kernels(copy.deepcopy(self._model).to(self._device), self._kernels)


def is_tiny(model: nn.Module) -> bool:
    """Whether calling its operators for a small batch takes a CPU longer than computing them.

    Never with convolutions: fused ones, which are grouped, are several times slower on a CPU.
    """
    convolves = any(isinstance(layer, nn.modules.conv._ConvNd) for layer in model.modules())
    # Buffers are the frozen part of a model.
    return not convolves and sum(state.numel() for state in chain(model.parameters(), model.buffers())) <= _TINY
