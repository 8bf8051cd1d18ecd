"""Time of Max-N's thresholds and packing for five links, against one copy of the gradient."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from rich.console import Console
from torch import Tensor

from benchmarks.measuring import options, ratio, table
from dlion_sim.learning import Layout, build
from dlion_sim.learning.process import kept_memory
from dlion_sim.protocol.exchange.selection import Ranking

LINKS_MBPS = (100, 50, 35, 20, 10)
ITERATION_SECONDS = 0.5
"""A link carries its budget of one iteration, at 8 bytes per entry."""


def pack(gradient: Tensor, layout: Layout) -> list[tuple[Tensor, Tensor]]:
    """Indices and values for each link."""
    ranking = Ranking(gradient, layout)
    counts = [int(mbps * 1e6 / 8 * ITERATION_SECONDS / 8) for mbps in LINKS_MBPS]
    return list(ranking.selections(ranking.thresholds(counts)).values())


def seconds(function: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def main() -> None:
    """Alternate with a copy, on a gradient whose magnitudes spread over decades, like real ones."""
    arguments = options(__doc__, repeat=21).parse_args()
    repeat = 1 if arguments.short else arguments.repeat
    torch.set_num_threads(1)
    layout = Layout.of(build("tutorial_cnn", (3, 32, 32), 10, seed=0))
    random = torch.Generator().manual_seed(0)
    gradient = torch.randn(layout.size, generator=random) * torch.randn(layout.size, generator=random).exp()
    room = torch.empty_like(gradient)
    pack(gradient, layout)
    copies, packs = [], []
    for _ in range(repeat):
        copies.append(seconds(lambda: room.copy_(gradient)))
        packs.append(seconds(lambda: pack(gradient, layout)))
    megabytes = gradient.nbytes / 1e6
    copy, packing = sorted(copies)[repeat // 2], sorted(packs)[repeat // 2]
    shown = table(
        f"selection: {megabytes:.1f} MB, one thread, five links", "", "ms", "GB/s of gradient", "times one copy"
    )
    shown.add_row("one copy", f"{copy * 1e3:.2f}", f"{megabytes / copy / 1e3:.1f}", "1")
    shown.add_row("select and pack", f"{packing * 1e3:.2f}", f"{megabytes / packing / 1e3:.1f}", ratio(packs, copies))
    Console().print(shown)


if __name__ == "__main__":
    with kept_memory():  # as in simulations
        main()
