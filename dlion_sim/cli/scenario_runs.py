"""How commands that run a scenario begin, with the scenario and its folder, and end, with a report and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from dlion_sim.cli.conventions import DIVERGED, FAILED, INTERRUPTED, RUNS, some
from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.results import Run
    from dlion_sim.scenario import Scenario


@contextmanager
def chosen(
    name: str, overrides: Sequence[str], output: Path | None, way: str | None = None
) -> Iterator[tuple[Scenario, Path]]:
    """The scenario `name` with `overrides`, and `output` or a new folder, whose name ends with the `way` it is run.

    Warns of settings without effect. Input errors within the block get the scenario's file, and errors in the user's
    own code the key that names it.
    """
    from dlion_sim.own_code import own_errors_told
    from dlion_sim.results import free_folder
    from dlion_sim.scenario import find, load
    from dlion_sim.scenario.overrides import located, read_all

    file = find(name)
    try:
        scenario = load(file, overrides, warn=lambda line: print(f"dlion: {line}", file=sys.stderr))
    except InputError as error:
        from dlion_sim.protocol.compose import with_choices

        raise with_choices(error) from None
    parts = [scenario.name, scenario.system.name.replace(":", "."), f"seed{scenario.seed}", *([way] if way else [])]
    try:
        with own_errors_told(scenario.references):
            yield scenario, output or free_folder(RUNS / "-".join(parts))
    except InputError as error:
        raise located(error, read_all(overrides)).within(file) from None


def report(run: Run, *, quiet: bool) -> None:
    """Plot and print the results of a run, and exit accordingly."""
    from dlion_sim.cli.run_report import run_report
    from dlion_sim.figures import plot_accuracy

    plot_accuracy(run, run.plot)
    if not quiet:
        Console().print(run_report(run))
        if run.manifest["status"] == "interrupted" and run.is_virtual:
            print(f"interrupted; dlion run --resume {run.folder} continues it")
    if diverged := run.diverged:
        print(f"dlion: diverged: {some(diverged)}; a lower learning rate may help", file=sys.stderr)
    exit_with_status(run.summary or {})
    if diverged:
        raise typer.Exit(DIVERGED)


def exit_with_status(summary: Mapping[str, Any]) -> None:
    """End the command if a run failed or was interrupted."""
    match summary["status"]:
        case "failed":
            print(f"dlion: the run failed: {summary['stopped_by']}", file=sys.stderr)
            raise typer.Exit(FAILED)
        case "interrupted":
            raise typer.Exit(INTERRUPTED)
