"""`dlion report`, `dlion watch` and `dlion export`: runs as pages, and for other tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from dlion_sim.cli.conventions import FAILED, INTERRUPTED, print_early_ends
from dlion_sim.cli.options import Quiet, Runs, Target
from dlion_sim.errors import InputError


def report(
    runs: Runs,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The page; by default report.html in the folder, or here with several folders.",
            show_default=False,
        ),
    ] = None,
    target: Target = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output file even if it is not a report.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write a page of a run, or a comparison of many, as one HTML file (extra report).

    Runs that differ only in their seed are one.
    """
    from dlion_sim.report import Collected, check_free, many_page, run_page, write_page
    from dlion_sim.results import Run, find_runs
    from dlion_sim.results.run_folder import REPORT, holds_run

    folders = find_runs(runs)
    (first, *others) = runs
    file = output or (Path(REPORT) if others else first / REPORT)
    check_free(file, force=force)
    if not others and holds_run(first):
        opened, faults = [Run.open(first)], []
        page = run_page(*opened)
    else:
        collected = Collected.of(folders)
        opened, faults = list(collected.runs), list(collected.faults.values())
        page = many_page(collected, target)
    write_page(page, file, force=force)
    if not quiet:
        print(f"report: {file}")
    print_early_ends(opened)
    for fault in faults:
        print(f"dlion: {fault}", file=sys.stderr)
    if faults:
        raise typer.Exit(FAILED)


def watch(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder, or a sweep's.", show_default=False)],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0: any free one.")] = 8642,
    target: Target = None,
    quiet: Quiet = False,
) -> None:
    """Serve a page of runs in progress to browsers on this machine (extra report).

    It only reads the folder. Ctrl-C ends it.
    """
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.report import PageServer, Watched, plotly_script

    if not folder.is_dir():
        raise InputError("is not a folder", file=folder, allowed="a run folder, or a folder of runs")
    plotly_script()  # raises InputError if it is missing
    with PageServer(Watched(folder, target), port) as server, Interrupts() as interrupts:
        if not quiet:
            print(f"watch: {server.address}", flush=True)
        while not interrupts.asked():
            server.handle_request()
    raise typer.Exit(INTERRUPTED)


def export(
    runs: Runs,
    to: Annotated[
        Literal["csv", "tensorboard", "trace"],
        typer.Option(
            help="Tables; event files for TensorBoard (extra tensorboard); or a timeline for Perfetto and Chrome.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="A new or empty folder.", show_default=False)],
    quiet: Quiet = False,
) -> None:
    """Export runs to CSV files, TensorBoard event files or trace files."""
    from dlion_sim.analysis.export import export_csv, export_tensorboard, export_trace
    from dlion_sim.results import Frames

    exports = {"csv": export_csv, "tensorboard": export_tensorboard, "trace": export_trace}
    exports[to](Frames.of(runs).runs, output)
    if not quiet:
        print(f"exported: {output}")
