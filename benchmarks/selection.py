"""Time of Max-N's thresholds and packing for five links, and of adding what five peers have sent, against one copy of
the gradient. What is added is added again by an operator of PyTorch for each peer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from rich.console import Console
from torch import Tensor

from benchmarks.measuring import options, ratio, table
from dlion_sim.learning import Layout, build
from dlion_sim.learning.process import kept_memory
from dlion_sim.protocol.exchange.selection import Ranking
from dlion_sim.protocol.messages import Contribution
from dlion_sim.protocol.sums import WeightedSums
from dlion_sim.protocol.updates import Update

LINKS_MBPS = (100, 50, 35, 20, 10)
ITERATION_SECONDS = 0.5
"""A link carries its budget of one iteration, at 8 bytes per entry."""
SHARE = 1 / 6
"""The factor of each contribution."""


def pack(gradient: Tensor, layout: Layout) -> list[tuple[Tensor, Tensor]]:
    """Indices and values for each link."""
    ranking = Ranking(gradient, layout)
    counts = [int(mbps * 1e6 / 8 * ITERATION_SECONDS / 8) for mbps in LINKS_MBPS]
    return list(ranking.selections(ranking.thresholds(counts)).values())


def add_by_operators(terms: Sequence[tuple[Update, float]], size: int) -> Tensor:
    """The weighted sum [size]."""
    total = torch.zeros(size)
    for update, factor in terms:
        update.add_to(total, factor)
    return total


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
    own = Update(0, Contribution(0, 1), (gradient,))
    terms = [(own, SHARE), *((Update(1, Contribution(0, 1), sent), SHARE) for sent in pack(gradient, layout))]
    cases: dict[str, Callable[[], object]] = {
        "one copy": lambda: room.copy_(gradient),
        "select and pack": lambda: pack(gradient, layout),
        "add all": lambda: WeightedSums().of(terms, layout.size),
        "add one after another": lambda: add_by_operators(terms, layout.size),
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    cases["add all"]()  # compiles
    for _ in range(repeat):
        for name, case in cases.items():
            times[name].append(seconds(case))
    megabytes = gradient.nbytes / 1e6
    title = f"selection: {megabytes:.1f} MB, one thread, five links"
    shown = table(title, "", "ms", "GB/s of gradient", "times one copy")
    for name, measured in times.items():
        middle = sorted(measured)[repeat // 2]
        shown.add_row(
            name, f"{middle * 1e3:.2f}", f"{megabytes / middle / 1e3:.1f}", ratio(measured, times["one copy"])
        )
    Console().print(shown)


if __name__ == "__main__":
    with kept_memory():  # as in simulations
        main()
