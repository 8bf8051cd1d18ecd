"""`dlion compare RUNS...`: the table that compares runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from dlion_sim.cli.conventions import FAILED
from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.analysis import Group
    from dlion_sim.results import Run

_MOST_ROWS = 1000


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders with runs below.", show_default=False)],
    target: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="The accuracy whose time is told; by default the highest that half of the runs reached."
        ),
    ] = None,
) -> None:
    """Compare runs: accuracy, time to an accuracy, speed-up over Baseline, traffic.

    Runs that differ in nothing but their seed are one row: mean ± standard deviation.
    """
    from dlion_sim.results import Run, find_runs

    opened: list[Run] = []
    faults: list[InputError] = []
    for folder in find_runs(runs):
        try:
            opened.append(Run.open(folder))
        except InputError as error:
            faults.append(error)
    if opened:
        print_comparison(opened, target)
    for fault in faults:
        print(f"dlion: {fault}", file=sys.stderr)
    if faults:
        raise typer.Exit(FAILED)


def print_comparison(runs: Sequence[Run], target: float | None = None) -> None:
    """Print the table of some runs. Raises InputError where none is completed, or one cannot be read."""
    from dlion_sim.analysis import common_target, group_runs

    groups = group_runs(runs)
    target = target or common_target(groups)
    Console().print(comparison_table(groups[:_MOST_ROWS], target))
    if len(groups) > _MOST_ROWS:
        print(f"... and {len(groups) - _MOST_ROWS} more; `dlion export --to csv` writes a row of every run")


def comparison_table(groups: Sequence[Group], target: float) -> Table:
    """A row a group: what tells it apart, and what its completed runs came to."""
    from dlion_sim.analysis import accuracy_of, comparison, varying

    keys = list(dict.fromkeys([*varying(groups), "system"]))
    table = Table(title=", ".join({group.labels["scenario"]: None for group in groups}), title_justify="left")
    for key in keys:
        table.add_column(key.rsplit(".", 1)[-1].replace("_", " "), overflow="fold", min_width=4)
    for heading in ("runs", f"{accuracy_of(groups)} (%)", f"time to {target:.0%} (s)", "speed-up", "sent (MB)"):
        table.add_column(heading, justify="right")
    for group, row in zip(groups, comparison(groups, target).to_dict("records"), strict=True):
        completed, runs, reached = int(row["completed"]), int(row["runs"]), int(row["reached"])
        time = _mean("{:.1f}", row["time"], row["time_std"])
        table.add_row(
            *(group.labels.get(key, "") for key in keys),
            str(runs) if completed == runs else f"{completed} of {runs}",
            _mean("{:.1f}", 100 * row["accuracy"], 100 * row["accuracy_std"]),
            time if reached in (0, completed) else f"{time} ({reached} of {completed})",
            _mean("{:.2f}", row["speedup"]),
            _mean("{:.4g}", row["bytes_sent"] / 1e6),
        )
    return table


def _mean(written: str, mean: float, deviation: float = float("nan")) -> str:
    if mean != mean:
        return "-"
    return written.format(mean) + ("" if deviation != deviation else f" ± {written.format(deviation)}")
