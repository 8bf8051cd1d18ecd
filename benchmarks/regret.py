"""What recommendations on own machines lost because they did not run all candidates to the end.

The sweep `own_machines.yaml` runs all candidates to the end with all seeds. A seed that misses the recommended target
counts with the end of its run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from benchmarks.measuring import table
from dlion_sim.analysis.comparison import final, time_to_target
from dlion_sim.results import Run


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each recommendation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regret", description=__doc__)
    parser.add_argument("exhaustive", type=Path, help="the sweep's folder")
    parser.add_argument("recommended", type=Path, nargs="+", help="an output of `dlion recommend --machines own`")
    options = parser.parse_args(arguments)
    runs = [Run.open(file.parent) for file in options.exhaustive.glob("*/manifest.json")]
    columns = ("scenario", "recommended", "fastest", "regret (s)", "regret (points)", "rank", "samples")
    found = table("Regret of recommendations", *columns, names=3)
    for folder in options.recommended:
        found.add_row(*row(json.loads((folder / "recommendation.json").read_text()), runs))
    Console().print(found)


def row(document: dict[str, Any], runs: Sequence[Run]) -> list[str]:
    """The scenario, its recommended and fastest candidates, what lies between them, and the simulated share."""
    name, target, samples = document["scenario"], document["target"]["value"], document["samples"]
    of_scenario = measured([run for run in runs if run.manifest["scenario"] == name], target)
    chosen = of_scenario.loc[document["winner"]["in_words"]]
    by_time = of_scenario.sort_values("seconds")
    fastest = by_time.iloc[0]
    return [
        name,
        f"{chosen.name}: {chosen.seconds:.0f} s",
        f"{fastest.name}: {fastest.seconds:.0f} s",
        f"{chosen.seconds - fastest.seconds:.1f} ({chosen.seconds / fastest.seconds - 1:.0%})",
        f"{100 * (of_scenario['metric'].max() - chosen.metric):.1f}",
        f"{1 + int((by_time['seconds'] < chosen.seconds).sum())} of {len(by_time)}",
        f"{samples['simulated'] / samples['exhaustive']:.0%}",
    ]


def measured(runs: Sequence[Run], target: float) -> pd.DataFrame:
    """By candidate, means over the seeds: `seconds` to the target, and the `metric` at the end."""
    rows = []
    for run in runs:
        seconds = time_to_target(run, target)
        rows.append(
            {
                "candidate": f"{run.point['system']}, learning rate {run.point['workload.optimizer.learning_rate']}",
                "seconds": float(run.outcome["virtual_seconds"]) if pd.isna(seconds) else seconds,
                "metric": final(run)["mean"],
            }
        )
    return pd.DataFrame(rows).groupby("candidate").mean()


if __name__ == "__main__":
    main()
