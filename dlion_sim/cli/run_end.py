"""How commands that run a scenario end: with the run's table and figure, what went wrong, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from dlion_sim.cli.conventions import DIVERGED, FAILED, INTERRUPTED, some

if TYPE_CHECKING:
    from dlion_sim.results import Run


def report(run: Run, *, quiet: bool) -> None:
    """Plot and print what came of a run, and exit accordingly."""
    from dlion_sim.cli.run_report import run_report
    from dlion_sim.figures import plot_accuracy

    plot_accuracy(run, run.plot)
    if not quiet:
        Console().print(run_report(run))
        if run.manifest["status"] == "interrupted" and run.is_virtual:
            print(f"interrupted; dlion run --resume {run.folder} goes on")
    if diverged := run.diverged:
        print(f"dlion: diverged: {some(diverged)}; a lower learning rate may help", file=sys.stderr)
    exit_as(run.summary or {})
    if diverged:
        raise typer.Exit(DIVERGED)


def exit_as(summary: Mapping[str, Any]) -> None:
    """End the command where a run failed or was interrupted."""
    match summary["status"]:
        case "failed":
            print(f"dlion: the run failed: {summary['stopped_by']}", file=sys.stderr)
            raise typer.Exit(FAILED)
        case "interrupted":
            raise typer.Exit(INTERRUPTED)
