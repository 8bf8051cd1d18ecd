"""Stalls of GPUs in Amazon's instances: Stash's claims (ICDCS 2023, arXiv 2208.14344), simulated.

Instances are micro-clouds of GPUs, connected by PCIe or NVLink, or two of them by the network. An iteration is
simulated with one GPU and with all, like `dlion stalls`, for networks by the sizes of their variables and their costs.
Writes CSVs of all runs, the claims in Markdown and two figures to `--output`; results/stash/README.md has the results.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.architectures import NETWORKS
from benchmarks.instances import ALONE, ONE, TWO, Placement, batch, gpu, samples, scenario
from benchmarks.measuring import markdown, options, table
from benchmarks.stash_claims import Claim, claims
from dlion_sim.figures.style import PALETTE, WIDE, drawing, legend_below, make_logarithmic
from dlion_sim.simulation import simulate
from dlion_sim.studies.stalls import variants

STUDIED = ("alexnet", "squeezenet", "shufflenet", "mobilenet", "resnet18", "resnet50", "vgg11", "bert_large")
"""Stash's small and large models."""
FAMILIES = tuple(name for name in NETWORKS if name.startswith(("resnet", "vgg")))
"""Networks of its study of layers, as far as known."""
LARGEST = Placement("p3.16xlarge"), Placement("p3.8xlarge", 2)
"""Placements of these families."""
SHORT = ("resnet10", "vgg11"), ("resnet10", "resnet18_no_norm", "vgg11"), (ONE[2], *LARGEST)
ITERATIONS = 1
"""Machines are equal and constant: further iterations take equal times within 0.5 %."""


_BAR = 0.13
_MARKS = {"resnet": "o", "vgg": "^"}


class Case(NamedTuple):
    """A network on a placement."""

    network: str
    placement: Placement


def outcome(case: Case) -> tuple[Case, float, float]:
    """The duration of an iteration of one GPU, and of all GPUs of the placement (s)."""
    names, planned = variants(scenario(*case), ITERATIONS)
    scenarios = {variant.name: variant.scenario for variant in planned}
    with TemporaryDirectory() as folder:
        ends = [
            simulate(scenarios[names[step]], Path(folder) / step, device="cpu").iterations()["virtual_time"]
            for step in ("R0", "R1x")
        ]
    print(f"{case.network} on {case.placement.name}: done", file=sys.stderr)
    alone, together = (float(each.mean()) / ITERATIONS for each in ends)
    return case, alone, together


def tabulated(simulated: Iterable[tuple[Case, float, float]]) -> pd.DataFrame:
    """A row for each network and placement, also of one GPU; seconds are of an iteration.

    `interconnect` is (T1 - T0) / T1, with T1 of the one instance with as many GPUs; `network` is the
    additional time of two instances, in parts of T1.
    """
    seconds = {case: (alone, together) for case, alone, together in simulated}
    rows = []
    for kind, single in ALONE.items():
        found = {case.network: alone for case, (alone, _) in seconds.items() if gpu(case.placement) == kind}
        rows += [_row(name, single, alone, alone, alone) for name, alone in found.items()]
    for (name, placement), (alone, together) in seconds.items():
        _, whole = seconds[Case(name, TWO.get(placement, placement))]
        rows.append(_row(name, placement, alone, whole, together))
    return pd.DataFrame(rows)


def _row(name: str, placement: Placement, alone: float, whole: float, together: float) -> dict[str, object]:
    network = NETWORKS[name]
    hours = together * samples(name) / (batch(name) * placement.gpus) / 3600
    hidden = max(0.0, together - alone - 2 / 3 * alone)
    return {
        "network": name,
        "parameters": network.parameters,
        "variables": len(network.sizes),
        "instances": placement.name,
        "gpus": placement.gpus,
        "alone s": alone,
        "iteration s": together,
        "waiting": 1 - alone / together,
        "waiting, overlapped": hidden / (alone + hidden),
        "interconnect": 1 - alone / whole,
        "network slowdown": together / whole - 1,
        "epoch h": hours,
        "epoch $": hours * placement.price,
    }


def shown(rows: pd.DataFrame) -> Table:
    """Waits of GPUs, and times and costs of epochs; the minima of each network are marked."""
    columns = ("model", "instances", "ms alone", "ms", "waiting", "if overlapped", "epoch h", "epoch $")
    made = table("waits of GPUs in an iteration; epochs in hours and dollars, * the least", *columns, names=2)
    for name, each in rows.groupby("network", sort=False):
        for _, row in each.iterrows():
            epochs = (f"{row[what]:.3g}{'*' * bool(row[what] == each[what].min())}" for what in ("epoch h", "epoch $"))
            times = (f"{1e3 * row[what]:.4g}" for what in ("alone s", "iteration s"))
            waits = (f"{row[what]:.1%}" for what in ("waiting", "waiting, overlapped"))
            made.add_row(str(name), row["instances"], *times, *waits, *epochs)
        made.add_section()
    return made


def compared(found: list[Claim]) -> Table:
    """The claims and their results here."""
    made = Table(title="claims", box=SIMPLE_HEAD)
    for column in Claim._fields:
        made.add_column(column.replace("_", " "))
    for claim in found:
        made.add_row(*claim)
    return made


def draw_stalls(file: Path, rows: pd.DataFrame) -> None:
    """Draw the share of an iteration that GPUs wait, by model and instances."""
    rows = rows[rows["waiting"] > 0]
    networks, places = (list(dict.fromkeys(rows[column])) for column in ("network", "instances"))
    with drawing(file, height=2.8, width=WIDE) as figure:
        axes = figure.subplots()
        for number, (place, each) in enumerate(rows.groupby("instances", sort=False)):
            at = [networks.index(name) + _BAR * (number - (len(places) - 1) / 2) for name in each["network"]]
            axes.bar(at, 100 * each["waiting"], 0.9 * _BAR, color=PALETTE[number], label=place)
        axes.set_xticks(range(len(networks)), [name.replace("_", "-") for name in networks])
        axes.set(ylabel="Waiting for messages\n(% of an iteration)", ylim=(0, 100))
        axes.grid(visible=False, axis="x")
        legend_below(figure, *axes.get_legend_handles_labels())


def draw_features(file: Path, families: pd.DataFrame) -> None:
    """Draw the wait of an iteration on one instance and on two, by the network's variables and parameters."""
    waits = families["iteration s"] - families["alone s"]
    rows = families.assign(wait=1e3 * waits, family=families["network"].str.extract(r"([a-z]+)", expand=False))
    rows["millions"] = rows["parameters"] / 1e6
    with drawing(file, height=2.8, width=WIDE) as figure:
        for panel, (column, label) in zip(
            figure.subplots(1, 2, sharey=True),
            {"variables": "Variables", "millions": "Parameters (millions)"}.items(),
            strict=True,
        ):
            for number, (place, of_place) in enumerate(rows.groupby("instances", sort=False)):
                for family, each in of_place.groupby("family"):
                    panel.plot(
                        *(each[column], each["wait"], _MARKS[str(family)]),
                        markersize=4,
                        color=PALETTE[number],
                        label=f"{str(family).replace('resnet', 'ResNets').replace('vgg', 'VGGs')} on {place}",
                    )
            panel.set_xlabel(label)
            make_logarithmic(panel, "x", rows[column].max() / rows[column].min())
            make_logarithmic(panel, "y", rows["wait"].max() / rows["wait"].min())
        figure.axes[0].set_ylabel("Waiting for messages\n(ms of an iteration)")
        legend_below(figure, *figure.axes[0].get_legend_handles_labels())


def main() -> None:
    """Simulate each network on all instances, and compare."""
    parser = options(__doc__)
    parser.add_argument("--output", type=Path, help="folder for stash.csv, families.csv, claims.md and figures")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="runs at a time")
    arguments = parser.parse_args()
    studied, families, places = SHORT if arguments.short else (STUDIED, FAMILIES, (*ONE, *TWO))
    # Stash has BERT on V100s only: with its batches it does not fit into a K80's memory.
    cases = [Case(name, place) for name in studied for place in places if name != "bert_large" or gpu(place) == "V100"]
    of_families = [Case(name, place) for name in families for place in LARGEST]
    with ProcessPoolExecutor(arguments.processes) as executor:
        simulated = list(executor.map(outcome, dict.fromkeys([*cases, *of_families])))
    rows = tabulated(each for each in simulated if each[0] in cases)
    by_family = tabulated(each for each in simulated if each[0] in of_families)
    by_family = by_family[by_family["instances"].isin([place.name for place in LARGEST])]
    found = claims(rows, by_family)
    console = Console()
    console.print(shown(rows))
    console.print(compared(found))
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        rows.to_csv(arguments.output / "stash.csv", index=False, float_format="%.5g")
        by_family.to_csv(arguments.output / "families.csv", index=False, float_format="%.5g")
        columns = [field.replace("_", " ") for field in Claim._fields]
        (arguments.output / "claims.md").write_text(f"{markdown(columns, found)}\n")
        draw_stalls(arguments.output / "stalls.png", rows)
        draw_features(arguments.output / "families.png", by_family)


if __name__ == "__main__":
    main()
