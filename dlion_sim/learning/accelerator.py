"""What differs between a GPU and a CPU, beyond PyTorch's own handling of devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

KIND = "cuda"
"""PyTorch's name of the kind of device, and of its module with streams and graphs."""

Function = Callable[[], tuple[Tensor, Tensor]]
"""A computation on inputs in fixed memory."""


def is_accelerator(device: torch.device) -> bool:
    """Whether it is a GPU."""
    return device.type == KIND


def name_of(device: torch.device) -> str:
    """The GPU's name, or "CPU"."""
    return str(_module().get_device_name(device)) if is_accelerator(device) else "CPU"


def available() -> bool:
    """Whether PyTorch can use a GPU here."""
    return bool(_module().is_available())


def count() -> int:
    """Number of GPUs."""
    return int(_module().device_count())


class GraphRecorder:
    """Records functions as CUDA graphs, with one launch in place of one per operator.

    The graphs share memory for their results: one's result is valid until another runs.
    """

    def __init__(self, device: torch.device) -> None:
        self._stream = _module().Stream(device)
        self._pool = _module().graph_pool_handle()

    def __call__(self, function: Function) -> Function:
        """The recorded function, which reads the same memory at each call."""
        cuda = _module()
        # Run once before: libraries are initialised at first use, which cannot be recorded.
        current = cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current)
        try:
            with cuda.stream(self._stream):
                function()
        finally:
            # Also after an error: shared state, such as a data set's statistics, may have been made there.
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
