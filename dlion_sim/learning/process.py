"""Where to compute, and what the process needs for it: settings that are there for as long as somebody needs them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any, Literal

import torch

from dlion_sim.errors import InputError
from dlion_sim.learning import accelerator

Device = Literal["auto", "cpu", "cuda"]
"""Where gradients are computed; auto: on a GPU if there is one."""


def device_named(device: Device) -> torch.device:
    """PyTorch's. Raises InputError where this machine has none."""
    available = accelerator.available()
    if device == "cuda" and not available:
        raise InputError("this machine has no GPU that PyTorch can use", file="`device` cuda", allowed="auto, cpu")
    return torch.device(accelerator.KIND if available and device != "cpu" else "cpu")


def device_of_node(device: Device, rank: int) -> torch.device:
    """Where a node of that rank computes: nodes share a machine's GPUs in turn. Raises InputError as `device_named`."""
    chosen = device_named(device)
    return torch.device(chosen.type, rank % accelerator.count()) if accelerator.is_accelerator(chosen) else chosen


def while_needed(
    setting: Callable[[], AbstractContextManager[None]],
) -> Callable[[], AbstractContextManager[None]]:
    """A setting that blocks may share, nested or side by side: the first makes it, the last to end puts it back."""
    lock, stack, users = threading.Lock(), ExitStack(), 0

    @contextmanager
    def needed() -> Iterator[None]:
        nonlocal users
        with lock:
            if not users:
                stack.enter_context(setting())
            users += 1
        try:
            yield
        finally:
            with lock:
                users -= 1
                if not users:
                    stack.close()

    return needed


@contextmanager
def one_core() -> Iterator[int]:
    """Operators of this thread use one core; the value is how many they would use else."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


@contextmanager
def frozen_objects() -> Iterator[None]:
    """What is there by now stays: the garbage collector need not walk it over and over.

    Where the caller has frozen objects there is no telling them apart from others afterwards, so nothing is done.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@while_needed
@contextmanager
def exact_cuda() -> Iterator[None]:
    """CUDA computes the same each time, and in float32 where it would round factors to TF32."""
    cudnn, cublas, onednn = torch.backends.cudnn, torch.backends.cuda, torch.backends.mkldnn
    # Torch's newer words for the former two below: neither say all, and each sets some of the others, oneDNN's too.
    operators = [getattr(cudnn, "conv", None), getattr(cudnn, "rnn", None), cublas.matmul]
    newer = [(operator, "fp32_precision") for operator in (*operators, getattr(onednn, "matmul", None))]
    precision = _read(torch.get_float32_matmul_precision)
    flags = [(cudnn, "deterministic"), (cudnn, "benchmark"), (cudnn, "allow_tf32"), *newer]
    former = [(*flag, _read(partial(getattr, *flag))) for flag in flags]
    cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, cublas.matmul.allow_tf32 = True, False, False, False
    for operator in filter(None, operators[:2]):
        operator.fp32_precision = "ieee"  # what is not allowed is still done where all of torch is to
    try:
        yield
    finally:
        if precision is not None:
            torch.set_float32_matmul_precision(precision)
        for place, name, value in former:
            if value is not None:
                setattr(place, name, value)


def _read(setting: Callable[[], Any]) -> Any:
    """None where this torch has no such setting, or cannot tell it as others of the same were set."""
    try:
        return setting()
    except (AttributeError, RuntimeError):
        return None
