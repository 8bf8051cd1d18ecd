"""Adaptation of systems to changing data: a table and a figure of the runs of `sweeps/drift`.

`dlion sweep sweeps/drift --output RUNS` makes these runs in half an hour on two cores. Writes a CSV of all of them and
a figure to `--output`; results/drift/README.md shows them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.measuring import options, table
from dlion_sim.analysis import group_runs
from dlion_sim.figures import plot_online
from dlion_sim.results import Frames, Run, final_metric

AROUND = (90.0, 150.0)
"""The time (s) of the change and the adaptation."""
GOOD = 0.75
"""A good accuracy on the new class."""
DRIFT = "workload.stream.drift"
"""The sweep's axis."""
MEASURES = ("adaptation_s", "final_level", "to_75_percent_s", "online_90_150", "online", "forgetting", "iterations")
"""The columns of the table."""


def row(run: Run) -> dict[str, object]:
    """The results of a run; of late classes, the mean."""
    summary, arrivals, classes = run.outcome, run.arrivals(), run.classes()
    stream = summary["stream"]
    levels, good = [], []
    for label in map(int, stream["adaptation"]):
        own = classes[classes["label"] == label]
        begin = own.loc[own["share"] > 0, "virtual_time"].min()
        curve = own[own["virtual_time"] >= begin].groupby("virtual_time")["accuracy"].mean()
        levels.append(final_metric(list(curve.items()), summary["virtual_seconds"])["mean"])
        good.append(curve.index[curve >= GOOD].min() - begin)
    around = arrivals[arrivals["virtual_time"].between(*AROUND)]
    return {
        "drift": run.point.get(DRIFT, ""),
        "system": run.system,
        "seed": run.manifest["seed"],
        "adaptation_s": np.mean(np.array([*stream["adaptation"].values()], dtype=float)),
        "final_level": np.mean(levels),
        "to_75_percent_s": np.mean(good),
        "online": stream["online_accuracy"],
        "online_90_150": (around["accuracy"] * around["batch_size"]).sum() / around["batch_size"].sum(),
        "forgetting": stream["forgetting"],
        "final_accuracy": summary["final_accuracy"]["mean"],
        "iterations": summary["iterations"]["mean"],
        "sent_gb": summary["bytes_sent"] / 1e9,
    }


def shown(rows: pd.DataFrame) -> Table:
    """Means over the seeds, with the range of adaptation."""
    made = table("adaptation of systems", "drift", "system", *(name.replace("_", " ") for name in MEASURES), names=2)
    for names, of_seeds in rows.groupby(["drift", "system"], sort=False):
        means, adaptation = of_seeds[[*MEASURES]].mean(skipna=False), of_seeds["adaptation_s"]
        span = f" ({adaptation.min():.0f} to {adaptation.max():.0f})"
        cells = [f"{means[name]:.4g}" + span * (name == "adaptation_s") for name in MEASURES]
        made.add_row(*map(str, names), *cells)
    return made


def main() -> None:
    """Read the runs, and print their results."""
    parser = options(__doc__)
    parser.add_argument("runs", type=Path, help="folder of the sweep's runs")
    parser.add_argument("--output", type=Path, help="folder for drift.csv and online.png")
    arguments = parser.parse_args()
    runs = Frames.of([arguments.runs]).runs
    rows = pd.DataFrame(map(row, runs)).sort_values(["drift", "system", "seed"], ignore_index=True)
    Console().print(shown(rows))
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        rows.round(4).to_csv(arguments.output / "drift.csv", index=False)
        plot_online(group_runs(runs), arguments.output / "online.png")


if __name__ == "__main__":
    main()
