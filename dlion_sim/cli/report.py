"""`dlion report RUNS... -o FILE`: a page to look at."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dlion_sim.cli.conventions import FAILED
from dlion_sim.cli.options import Quiet, Target


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders with runs below.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The page; by default report.html in the folder, of several here.",
            show_default=False,
        ),
    ] = None,
    target: Target = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output file even if it is no report.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write a page that shows a run, or compares many: one HTML file, which opens from disk (needs the extra report).

    Runs that differ in nothing but their seed are compared as one.
    """
    from dlion_sim.report import Collected, check_free, many_page, run_page, write_page
    from dlion_sim.results import Run, find_runs
    from dlion_sim.results.run_folder import REPORT, holds_run

    folders = find_runs(runs)
    (first, *others) = runs
    file = output or (Path(REPORT) if others else first / REPORT)
    check_free(file, force=force)
    if not others and holds_run(first):
        page, faults = run_page(Run.open(first)), []
    else:
        collected = Collected.of(folders)
        page, faults = many_page(collected, target), list(collected.faults.values())
    write_page(page, file, force=force)
    if not quiet:
        print(f"report: {file}")
    for fault in faults:
        print(f"dlion: {fault}", file=sys.stderr)
    if faults:
        raise typer.Exit(FAILED)
