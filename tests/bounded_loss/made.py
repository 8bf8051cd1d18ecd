"""Layouts and messages to cut."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from dlion_sim.learning.flat import Layout
from dlion_sim.protocol.exchange.ring import Chunk
from dlion_sim.protocol.messages import Contribution, Message, Mixed

WORKERS = 3


def layout(*sizes: int) -> Layout:
    return Layout(tuple(f"{number}.weight" for number in range(len(sizes))), tuple((size,) for size in sizes))


layouts = st.lists(st.integers(1, 1500), min_size=1, max_size=6).map(lambda sizes: layout(*sizes))


def values(count: int, seed: int = 0) -> torch.Tensor:
    """Of magnitudes that spread over decades, with equal ones among them."""
    random = torch.Generator().manual_seed(seed)
    return (torch.randn(count, generator=random).exp() * torch.randn(count, generator=random)).round(decimals=1)


def dense(count: int, *, seed: int = 0, body: type[Contribution] = Contribution, **fields: int) -> Message:
    """A stretch of a gradient, or of another contribution's entries."""
    return Message(1, body(fields.pop("iteration", 0), 32, **fields), (values(count, seed),))


@st.composite
def messages(draw: st.DrawFn, shape: Layout) -> Message:
    """Anything that may be cut, of a model of that layout."""
    seed = draw(st.integers(0, 99))
    match draw(st.sampled_from(["stretch", "entries", "chunk", "parameters"])):
        case "stretch":
            offset = draw(st.integers(0, shape.size - 1))
            return dense(draw(st.integers(1, shape.size - offset)), seed=seed, offset=offset)
        case "entries":
            chosen = torch.randperm(shape.size, generator=torch.Generator().manual_seed(seed))
            indices = chosen[: draw(st.integers(1, shape.size))].sort().values.to(torch.int32)
            return Message(1, Contribution(0, 32, 1.0), (indices, values(len(indices), seed)))
        case "chunk" if shape.size >= WORKERS:
            chunk = Chunk(0, draw(st.integers(0, WORKERS - 2)))
            begin = chunk.first_entry(1, WORKERS, shape.size)
            following = (begin * WORKERS // shape.size + 1) * shape.size // WORKERS
            return Message(1, chunk, (values(max(1, min(following, shape.size) - begin), seed),))
        case _:
            return dense(shape.size, seed=seed, body=Mixed)
