"""Completion times of gradients to parameter servers in a data centre: DCTCP, pFabric, bounded loss (DLCP).

144 hosts of 100 Gbps in 9 leaves under 4 spines. Each is a worker, and the server of a part of the parameters; in
synchronized rounds every worker sends its gradient of ResNet-18 to the servers, layer by layer: 143 messages meet at
each server's port. Writes a CSV of all runs and a figure to `--output`; results/incast/README.md has the results.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.ticker import StrMethodFormatter
from rich.console import Console
from rich.table import Table

from benchmarks.fabric import Fabric
from benchmarks.measuring import options, table
from benchmarks.rounds import Transport, run
from dlion_sim.figures.looks import DASHES
from dlion_sim.figures.style import PALETTE, WIDE, drawing, legend_below
from dlion_sim.simulation.packets.parts import Bounded, Pfabric, Reliable

FRAME = 1514
QUEUES = Fabric(buffer=225e3, mark_above=65 * FRAME)
"""The buffer is that of DCTCP in pFabric's evaluation, the threshold DCTCP's own for 10 Gbps (both recalled)."""
DROPPING = replace(QUEUES, drop_above=QUEUES.mark_above)
"""Like RED: above one threshold, unprotected packets are dropped and others marked."""
SHALLOW = Fabric(buffer=365e3)
"""Two bandwidth-delay products of a round trip of 14.6 us, as in pFabric's evaluation (recalled)."""
LONG, BRIEF = 10e-3, 200e-6
"""Least timeouts: of a kernel, and for these round trips."""
DCTCP, PFABRIC = "DCTCP, 10 ms", "pFabric"
"""The references of the published figures."""
DLCP = "DLCP, p = 0.1, 200 us"
TRANSPORTS = (
    Transport(DCTCP, Reliable(least_timeout=LONG), QUEUES),
    Transport("DCTCP, 10 ms, sprayed", Reliable(least_timeout=LONG), QUEUES, spray=True),
    Transport("DCTCP, 200 us", Reliable(least_timeout=BRIEF), QUEUES),
    Transport(PFABRIC, Pfabric(window=126, timeout=45e-6), SHALLOW, spray=True, by_size=True),
    Transport("DLCP, p = 0, 10 ms", Bounded(least_timeout=LONG), DROPPING, spray=True),
    Transport("DLCP, p = 0, 200 us", Bounded(least_timeout=BRIEF), DROPPING, spray=True),
    Transport("DLCP, p = 0.1, 10 ms", Bounded(least_timeout=LONG), DROPPING, spray=True, bound=0.1),
    Transport(DLCP, Bounded(least_timeout=BRIEF), DROPPING, spray=True, bound=0.1),
)
PUBLISHED = {DCTCP: "-43.1 %, -91.8 %", PFABRIC: "-35.5 %, -88.6 %"}
"""The change with DLCP in its own simulation, of the mean and the tail."""
MEASURES: dict[str, Callable[[np.ndarray], float]] = {
    "mean": np.mean,
    "p50": np.median,
    "p99": lambda times: np.percentile(times, 99),
    "max": np.max,
}


class Case(NamedTuple):
    """One run."""

    transport: Transport
    rounds: int
    seed: int
    hosts: int | None


def outcome(case: Case) -> tuple[dict[str, object], np.ndarray]:
    """The results of a run, in ms and shares of all bytes; and completion times in ms, [messages]."""
    messages, rounds = run(*case)
    times = np.array([message.completion for message in messages]) * 1e3
    total = sum(message.size for message in messages)
    row = {
        "transport": case.transport.name,
        "seed": case.seed,
        **{f"{name} ms": float(measure(times)) for name, measure in MEASURES.items()},
        "round ms": float(np.mean(rounds)) * 1e3,
        "resent": sum(message.resent for message in messages) / total,
        "lost": sum(message.lost for message in messages) / total,
    }
    print(f"{case.transport.name}, seed {case.seed}: done", file=sys.stderr)
    return row, times


def compared(rows: pd.DataFrame) -> Table:
    """Means over the seeds, the range of p99 over seeds, and the change with DLCP."""
    columns = (*MEASURES, "p99 by seed", "round", "resent", "lost", "DLCP's mean is", "its p99 is", "published")
    made = table("completion of messages, ms", "transport", *columns)
    means = rows.drop(columns="seed").groupby("transport", sort=False).mean()
    best = means.loc[DLCP]
    for name, mean in means.iterrows():
        p99 = rows.loc[rows["transport"] == name, "p99 ms"]
        made.add_row(
            str(name),
            *(f"{mean[f'{measure} ms']:.2f}" for measure in MEASURES),
            f"{p99.min():.2f} to {p99.max():.2f}",
            f"{mean['round ms']:.2f}",
            f"{mean['resent']:.2%}",
            f"{mean['lost']:.2%}",
            *(f"{best[measure] / mean[measure] - 1:+.1%}" if name != DLCP else "" for measure in ("mean ms", "p99 ms")),
            PUBLISHED.get(str(name), ""),
        )
    return made


def draw(file: Path, times: dict[str, np.ndarray]) -> None:
    """Draw the share of messages that take longer than a time: completion times in ms by transport, over all seeds."""
    with drawing(file, height=2.8, width=WIDE) as figure:
        axes = figure.add_subplot()
        for place, (name, taken) in enumerate(times.items()):
            share = 100 * (1 - np.arange(1, len(taken) + 1) / len(taken))
            axes.loglog(
                np.sort(taken)[:-1], share[:-1], label=name, color=PALETTE[place], linestyle=DASHES[place % len(DASHES)]
            )
        axes.set(xlabel="Completion (ms)", ylabel="Messages that take longer", xlim=(0.3, None))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g} %"))
        legend_below(figure, *axes.get_legend_handles_labels())


def main() -> None:
    """Run each transport with each seed."""
    parser = options(__doc__)
    parser.add_argument("--output", type=Path, help="folder for incast.csv and completion.png")
    parser.add_argument("--rounds", type=int, default=1, help="of each run")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="runs at a time")
    arguments = parser.parse_args()
    hosts, rounds, seeds = (8, 1, 1) if arguments.short else (None, arguments.rounds, arguments.seeds)
    run(TRANSPORTS[0], 1, 0, 2)  # compiles
    cases = [Case(transport, rounds, seed, hosts) for transport in TRANSPORTS for seed in range(seeds)]
    with ProcessPoolExecutor(arguments.processes) as executor:
        rows, times = zip(*executor.map(outcome, cases), strict=True)
    frame = pd.DataFrame(rows)
    Console().print(compared(frame))
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        frame.to_csv(arguments.output / "incast.csv", index=False, float_format="%.6g")
        draw(
            arguments.output / "completion.png",
            {t.name: np.concatenate(times[k * seeds : (k + 1) * seeds]) for k, t in enumerate(TRANSPORTS)},
        )


if __name__ == "__main__":
    main()
