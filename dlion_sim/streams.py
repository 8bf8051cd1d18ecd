"""Random streams: one seed for a run, one named stream a purpose. A leaf: everything may import it."""

from __future__ import annotations

import hashlib

import numpy as np


def stream_seed(seed: int, *names: str | int) -> int:
    """A 63-bit seed for the purpose that `names` spell, e.g. `stream_seed(1, "batches", 4)`.

    Streams are told apart by name, so that adding one never shifts the numbers of another.
    """
    digest = hashlib.sha256("/".join(map(str, (seed, *names))).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """The generator of the stream that `names` spell."""
    return np.random.Generator(np.random.PCG64(stream_seed(seed, *names)))
