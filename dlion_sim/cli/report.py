"""`dlion report RUN -o FILE`: a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlion_sim.cli.options import Quiet
from dlion_sim.errors import InputError


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="A run folder.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page; by default report.html in the run folder.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output file even if it is no report.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write a page that shows a run: one HTML file, which opens from disk (needs the extra report)."""
    from dlion_sim.report import check_free, run_page, write_page
    from dlion_sim.results import Run, find_runs
    from dlion_sim.results.run_folder import REPORT

    found = find_runs(runs)
    if len(found) > 1:
        raise InputError(f"{len(found)} runs", file="RUN", allowed="one")
    (folder,) = found
    file = output or folder / REPORT
    check_free(file, force=force)
    write_page(run_page(Run.open(folder)), file, force=force)
    if not quiet:
        print(f"report: {file}")
