"""The device of computations, and settings of the process that apply while they are in use."""

from __future__ import annotations

import ctypes
import gc
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any, Literal

import numpy as np
import torch

from dlion_sim.errors import InputError
from dlion_sim.learning import accelerator

Device = Literal["auto", "cpu", "cuda"]
"""Device of gradients; auto: a GPU if there is one."""

# Of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_ALL, _LARGE = 2**31 - 1, 2**20
_MOST_BY_ITSELF = 2**25
"""The library's own maximum of the second threshold (twice that of the first one), and of versions before 2.35."""


def device_named(device: Device) -> torch.device:
    """PyTorch's device. Raises InputError if this machine has none."""
    available = accelerator.available()
    if device == "cuda" and not available:
        raise InputError("this machine has no GPU that PyTorch can use", file="`device` cuda", allowed="auto, cpu")
    return torch.device(accelerator.KIND if available and device != "cpu" else "cpu")


def device_of_node(device: Device, rank: int) -> torch.device:
    """The device of the node of that rank: nodes take turns among a machine's GPUs. Raises as `device_named`."""
    chosen = device_named(device)
    return torch.device(chosen.type, rank % accelerator.count()) if accelerator.is_accelerator(chosen) else chosen


def while_needed(
    setting: Callable[[], AbstractContextManager[None]],
) -> Callable[[], AbstractContextManager[None]]:
    """A setting that nested or concurrent blocks share: the first makes it, the last one to end restores it."""
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
    """Operators of this thread use one core; yields the former number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


_blocks = 0
"""Of frozen objects, so far."""


@while_needed
@contextmanager
def frozen_objects() -> Iterator[None]:
    """The garbage collector ignores all present objects within the block.

    Does nothing if the caller has frozen objects, which could not be distinguished afterwards.
    """
    global _blocks
    if gc.get_freeze_count():
        yield
        return
    # What an earlier block has left; before the first one there is little, among the many objects of imported modules.
    if _blocks:
        gc.collect()
    _blocks += 1
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators of torch (on the CPU), numpy and Python within the block, and restore them."""
    python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which would seed the accelerators too.
        torch.default_generator.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(of_numpy)  # noqa: NPY002


@while_needed
@contextmanager
def kept_memory() -> Iterator[None]:
    """The C library (glibc) keeps freed memory within the block, in place of returning it to the system.

    Otherwise each large, short-lived tensor of a gradient gets pages that the system has to clear, and that are in no
    cache. After the block, free memory is returned, and the thresholds are at the library's own maximum: their former
    values cannot be read.
    """
    with _allocating(_ALL):
        yield


@while_needed
@contextmanager
def returned_memory() -> Iterator[None]:
    """The C library (glibc) returns freed blocks of more than a megabyte within the block, and keeps smaller ones.

    Otherwise short-lived tensors leave holes between parameters of many small models. Afterwards as `kept_memory`.
    """
    with _allocating(_LARGE):
        yield


@contextmanager
def _allocating(mmap_threshold: int) -> Iterator[None]:
    """Blocks of as many bytes as the threshold are returned when they are freed."""
    try:
        library = ctypes.CDLL(None)
        mallopt, trim = library.mallopt, library.malloc_trim
    except (AttributeError, OSError, TypeError):
        yield
        return
    if not mallopt(_MMAP_THRESHOLD, mmap_threshold):
        mallopt(_MMAP_THRESHOLD, _MOST_BY_ITSELF)
    mallopt(_TRIM_THRESHOLD, _ALL)
    try:
        yield
    finally:
        mallopt(_MMAP_THRESHOLD, _MOST_BY_ITSELF)
        mallopt(_TRIM_THRESHOLD, 2 * _MOST_BY_ITSELF)
        trim(0)


@while_needed
@contextmanager
def exact_cuda() -> Iterator[None]:
    """CUDA is deterministic within the block, and does not round factors to TF32."""
    cudnn, cublas, onednn = torch.backends.cudnn, torch.backends.cuda, torch.backends.mkldnn
    # Torch's newer names of the last two flags: neither set covers all, and each sets some of the others, oneDNN's too.
    operators = [getattr(cudnn, "conv", None), getattr(cudnn, "rnn", None), cublas.matmul]
    newer = [(operator, "fp32_precision") for operator in (*operators, getattr(onednn, "matmul", None))]
    precision = _read(torch.get_float32_matmul_precision)
    flags = [(cudnn, "deterministic"), (cudnn, "benchmark"), (cudnn, "allow_tf32"), *newer]
    former = [(*flag, _read(partial(getattr, *flag))) for flag in flags]
    cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, cublas.matmul.allow_tf32 = True, False, False, False
    for operator in filter(None, operators[:2]):
        operator.fp32_precision = "ieee"  # otherwise a setting for all of torch has precedence
    try:
        yield
    finally:
        if precision is not None:
            torch.set_float32_matmul_precision(precision)
        for place, name, value in former:
            if value is not None:
                setattr(place, name, value)


def _read(setting: Callable[[], Any]) -> Any:
    """The value, or None if this torch has no such setting, or refuses to read it after newer ones were set."""
    try:
        return setting()
    except (AttributeError, RuntimeError):
        return None
