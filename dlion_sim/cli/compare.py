"""`dlion compare RUNS...`: the table that compares runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dlion_sim.cli.conventions import FAILED, print_early_ends
from dlion_sim.cli.options import Runs, Target
from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.analysis import Group
    from dlion_sim.results import Run

_MOST_ROWS = 1000


Format = Literal["table", "csv", "json", "markdown"]


def compare(
    runs: Runs,
    target: Target = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Prices of instances, in place of the runs'; see `dlion catalogs`.",
            show_default=False,
        ),
    ] = None,
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            help="`table`: the columns that fit the terminal, in a pipe all; `csv` and `json` have SI units.",
        ),
    ] = "table",
) -> None:
    """Compare runs: accuracy or another metric, time to a target, speed-up over Baseline, traffic, cost.

    Runs that differ only in their seed are one row: a mean and its 95 % t-interval.
    """
    from dlion_sim.analysis import at_prices_of
    from dlion_sim.results import Run, find_runs

    opened: list[Run] = []
    faults: list[InputError] = []
    for folder in find_runs(runs):
        try:
            opened.append(Run.open(folder))
        except InputError as error:
            faults.append(error)
    if catalog is not None:
        opened = [at_prices_of(run, catalog) for run in opened]
    print_early_ends(opened)
    if opened:
        print_comparison(opened, target, format_)
    for fault in faults:
        print(f"dlion: {fault}", file=sys.stderr)
    if faults:
        raise typer.Exit(FAILED)


def print_comparison(runs: Sequence[Run], target: str | None = None, format_: Format = "table") -> None:
    """Print the table of some runs. Raises InputError if none is completed, or one cannot be read."""
    from dlion_sim.analysis import chosen_target, group_runs, with_own_optimizers
    from dlion_sim.cli.comparison_table import comparison_table
    from dlion_sim.cli.fitting import wide_console

    groups = with_own_optimizers(group_runs(runs))
    chosen = chosen_target(groups, target)
    if format_ in ("csv", "json"):
        print(_data(groups, chosen.value, format_), end="")
        return
    table = comparison_table(groups[:_MOST_ROWS], chosen.value, chosen.source)
    if format_ == "markdown":
        print(table.markdown())
    else:
        wide_console().print(table)
    if len(groups) > _MOST_ROWS:
        print(f"... and {len(groups) - _MOST_ROWS} more; `dlion export --to csv` writes a row of every run")


def _data(groups: Sequence[Group], target: float, format_: Format) -> str:
    """The rows of `analysis.comparison`, with the target and their labels."""
    from dlion_sim.analysis import comparison, varying

    rows = comparison(groups, target)
    rows["target"] = target
    for place, key in enumerate(dict.fromkeys(["scenario", *varying(groups), "system"])):
        name = f"scenario.{key}" if key in rows else key  # `target` may vary, too
        rows.insert(place, name, [group.labels.get(key, "") for group in groups])
    if format_ == "csv":
        return rows.to_csv(index=False)
    return rows.to_json(orient="records", indent=2) + "\n"
