"""`dlion validate`: compares a simulated run with a real one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dlion_sim.cli.conventions import RUNS
from dlion_sim.cli.options import Fifo, Force, Overrides, Quiet
from dlion_sim.cli.scenario_runs import chosen
from dlion_sim.errors import InputError


def validate(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENARIO | SIMULATED REAL",
            help="A scenario, which is simulated and emulated; or the folders of two such runs.",
            show_default=False,
        ),
    ],
    overrides: Overrides = [],  # noqa: B006  (only read)
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A folder for the comparison; by default a new one in results/runs."),
    ] = None,
    fifo: Fifo = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Compare the simulator with a real run: iteration times, bytes by link, accuracy over time.

    Emulation needs root and Mininet; the comparison of two existing runs needs neither.
    """
    from dlion_sim.cli.fidelity_report import fidelity_report
    from dlion_sim.cli.progress import clock_bar, progress_bar
    from dlion_sim.emulation import check_requirements
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.results import Run, free_folder
    from dlion_sim.studies.validation import validate as validate_scenario
    from dlion_sim.studies.validation import write_comparison

    if len(what) == 2 and not overrides and not fifo:
        simulated, real = (Run.open(Path(folder)) for folder in what)
        done = write_comparison(simulated, real, output or free_folder(RUNS / f"{real.folder.name}-fidelity"))
    elif len(what) == 1:
        check_requirements()
        with chosen(what[0], overrides, output, "fidelity") as (scenario, folder), Interrupts() as interrupts:
            done = validate_scenario(
                scenario,
                folder,
                fair=not fifo,
                force=force,
                interrupted=interrupts.asked,
                simulating=progress_bar(scenario, quiet=quiet),
                emulating=clock_bar(scenario, quiet=quiet),
            )
    else:
        raise InputError(
            f"{len(what)} arguments", allowed="a scenario, or two run folders and neither --set nor --fifo"
        )
    if not quiet:
        Console().print(fidelity_report(done.fidelity, done.simulated, done.figure))
