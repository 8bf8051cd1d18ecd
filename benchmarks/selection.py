"""Time of Max-N's thresholds and packing for five links, against one copy of the gradient."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.measuring import options, ratio
from dlion_sim.learning import Layout, build
from dlion_sim.learning.memory import kept_memory
from dlion_sim.protocol.exchange.selection import Ranking

LINKS_MBPS = (100, 50, 35, 20, 10)
ITERATION_SECONDS = 0.5
"""A link carries what it can in one iteration, at 8 bytes an entry."""


def pack(gradient: Tensor, layout: Layout) -> list[tuple[Tensor, Tensor]]:
    """What each link carries: indices and values."""
    ranking = Ranking(gradient, layout)
    counts = [int(mbps * 1e6 / 8 * ITERATION_SECONDS / 8) for mbps in LINKS_MBPS]
    return list(ranking.selections(ranking.thresholds(counts)).values())


def seconds(function: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def main() -> None:
    """Take turns with a copy, on a gradient whose magnitudes spread over decades, as real ones do."""
    parser = options(__doc__)
    parser.add_argument("--repeat", type=int, default=21)
    arguments = parser.parse_args()
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
    table = Table(title=f"selection: {megabytes:.1f} MB, one thread, five links")
    for column in ("", "ms", "GB/s of gradient", "times one copy"):
        table.add_column(column, justify="right")
    table.add_row("one copy", f"{copy * 1e3:.2f}", f"{megabytes / copy / 1e3:.1f}", "1")
    table.add_row("select and pack", f"{packing * 1e3:.2f}", f"{megabytes / packing / 1e3:.1f}", ratio(packs, copies))
    Console().print(table)


if __name__ == "__main__":
    with kept_memory():  # as in simulations
        main()
