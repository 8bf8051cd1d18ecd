"""How long gradients take to parameter servers of a data centre, by transport: DCTCP, pFabric, bounded loss (DLCP).

144 hosts of 100 Gbps in 9 leaves under 4 spines. Each is a worker, and the server of a part of the parameters; in
synchronized rounds every worker sends its gradient of ResNet-18, layer by layer, to the servers, so that 143 messages
meet at each server's port. Writes a CSV of all runs and a figure to `--output`; docs/incast.md has the results.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.fabric import Fabric
from benchmarks.measuring import options
from benchmarks.rounds import Outcome, Transport, run
from dlion_sim.figures.looks import DASHES
from dlion_sim.figures.style import PALETTE, drawing, legend_below
from dlion_sim.simulation.packets.parts import Bounded, Pfabric, Reliable

FRAME = 1514
DCTCP_FABRIC = Fabric(buffer=225e3, mark_above=65 * FRAME)
"""The buffer is that of DCTCP in pFabric's evaluation, the threshold DCTCP's own for 10 Gbps (both recalled)."""
DCTCP = Reliable(least_timeout=10e-3)
DLCP_FABRIC = replace(DCTCP_FABRIC, drop_above=65 * FRAME)
DLCP = Bounded(least_timeout=10e-3)
TRANSPORTS = (
    Transport("DCTCP", DCTCP, DCTCP_FABRIC),
    Transport("DCTCP, 200 us", DCTCP._replace(least_timeout=200e-6), DCTCP_FABRIC),
    Transport("DCTCP, sprayed", DCTCP, DCTCP_FABRIC, spray=True),
    Transport("pFabric", Pfabric(window=126, timeout=45e-6), Fabric(buffer=365e3), spray=True, by_size=True),
    Transport("DLCP, p = 0", DLCP, DLCP_FABRIC, spray=True),
    Transport("DLCP, p = 0.1", DLCP, DLCP_FABRIC, spray=True, bound=0.1),
    Transport("DLCP, p = 0, 200 us", DLCP._replace(least_timeout=200e-6), DLCP_FABRIC, spray=True),
    Transport("DLCP, p = 0.1, 200 us", DLCP._replace(least_timeout=200e-6), DLCP_FABRIC, spray=True, bound=0.1),
)
PUBLISHED = {"DCTCP": (-43.1, -91.8), "pFabric": (-35.5, -88.6)}
"""Percent by which DLCP's completion times are shorter than these, in its own simulation: the mean, and the tail."""
MEASURES = {"mean": np.mean, "p50": np.median, "p99": lambda times: np.percentile(times, 99), "max": np.max}


def row(transport: Transport, seed: int, outcome: Outcome) -> dict[str, object]:
    """What a run comes to: times in ms, parts of all bytes."""
    times = np.array([message.completion for message in outcome.messages]) * 1e3
    total = sum(message.size for message in outcome.messages)
    return {
        "transport": transport.name,
        "seed": seed,
        **{f"{name} ms": float(measure(times)) for name, measure in MEASURES.items()},
        "round ms": float(np.mean(outcome.rounds)) * 1e3,
        "resent": sum(message.resent for message in outcome.messages) / total,
        "lost": sum(message.lost for message in outcome.messages) / total,
    }


def compared(rows: pd.DataFrame) -> Table:
    """Means over the seeds, and how far the p99 of single ones are apart."""
    table = Table(title="completion of messages, ms")
    for column in ("transport", *MEASURES, "p99 by seed", "round", "resent", "lost"):
        table.add_column(column, justify="left" if column == "transport" else "right")
    for name, runs in rows.groupby("transport", sort=False):
        means = runs.drop(columns="transport").mean()
        table.add_row(
            str(name),
            *(f"{means[f'{measure} ms']:.2f}" for measure in MEASURES),
            f"{runs['p99 ms'].min():.2f} to {runs['p99 ms'].max():.2f}",
            f"{means['round ms']:.2f}",
            f"{means['resent']:.2%}",
            f"{means['lost']:.2%}",
        )
    return table


def draw(file: Path, times: dict[str, np.ndarray]) -> None:
    """Which part of messages takes longer than that: completion times in ms, by transport, over all seeds."""
    with drawing(file, height=2.6) as figure:
        axes = figure.add_subplot()
        for place, (name, taken) in enumerate(times.items()):
            share = 1 - np.arange(1, len(taken) + 1) / len(taken)
            axes.loglog(
                np.sort(taken)[:-1], share[:-1], label=name, color=PALETTE[place], linestyle=DASHES[place % len(DASHES)]
            )
        axes.set(xlabel="completion (ms)", ylabel="part of messages that take longer")
        legend_below(figure, *axes.get_legend_handles_labels())


def main() -> None:
    """Run each transport with each seed."""
    parser = options(__doc__)
    parser.add_argument("--output", type=Path, help="folder for incast.csv and completion.png")
    parser.add_argument("--rounds", type=int, default=1, help="of each run")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    hosts, rounds, seeds = (12, 1, 1) if arguments.short else (None, arguments.rounds, arguments.seeds)
    rows, times = [], {}
    for transport in TRANSPORTS:
        outcomes = [run(transport, rounds, seed, hosts) for seed in range(seeds)]
        rows += [row(transport, seed, outcome) for seed, outcome in enumerate(outcomes)]
        times[transport.name] = np.array([m.completion for outcome in outcomes for m in outcome.messages]) * 1e3
        print(f"{transport.name}: done", file=sys.stderr)
    table = pd.DataFrame(rows)
    Console().print(compared(table))
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        table.to_csv(arguments.output / "incast.csv", index=False, float_format="%.6g")
        draw(arguments.output / "completion.png", times)


if __name__ == "__main__":
    main()
