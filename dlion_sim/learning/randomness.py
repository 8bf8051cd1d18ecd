"""Global random state, for code that uses no other."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


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
