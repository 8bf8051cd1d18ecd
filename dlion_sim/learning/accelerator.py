"""The GPU, as far as code has to treat it otherwise than a CPU: all else PyTorch does by the devices of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

KIND = "cuda"
"""PyTorch's name for the kind of device, and for the module that has its streams and graphs."""

Function = Callable[[], tuple[Tensor, Tensor]]
"""What is computed of inputs in memory that stays."""


def is_accelerator(device: torch.device) -> bool:
    """Whether it is a GPU."""
    return device.type == KIND


def name_of(device: torch.device) -> str:
    """What the GPU calls itself, or "CPU"."""
    return str(_module().get_device_name(device)) if is_accelerator(device) else "CPU"


def available() -> bool:
    """Whether this machine has one that PyTorch can use."""
    return bool(_module().is_available())


def count() -> int:
    """How many of them there are."""
    return int(_module().device_count())


class GraphRecorder:
    """Records functions as CUDA graphs, which run by one launch instead of one for each operator.

    The graphs share memory for what they compute: what one has answered lasts until another runs.
    """

    def __init__(self, device: torch.device) -> None:
        self._stream = _module().Stream(device)
        self._pool = _module().graph_pool_handle()

    def __call__(self, function: Function) -> Function:
        """The function, recorded: it reads the memory that it read when it was recorded."""
        cuda = _module()
        # Run once before: libraries set themselves up when first used, which cannot be recorded.
        current = cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current)
        try:
            with cuda.stream(self._stream):
                function()
        finally:
            # Also where it failed: what others share, such as a data set's statistics, was perhaps made there.
            current.wait_stream(self._stream)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph, pool=self._pool, stream=self._stream):
            answer = function()

        def replay() -> tuple[Tensor, Tensor]:
            graph.replay()
            return answer

        return replay


def _module() -> Any:
    return getattr(torch, KIND)
