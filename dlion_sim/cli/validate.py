"""The command that holds a simulated run against a real one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dlion_sim.cli.chosen import chosen
from dlion_sim.cli.conventions import RUNS
from dlion_sim.cli.options import Fifo, Force, Overrides, Quiet
from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.results import Run

_FIGURE, _DOCUMENT = "fidelity.png", "fidelity.json"


def validate(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENARIO | SIMULATED REAL",
            help="A scenario, which is simulated and emulated; or the folders of two such runs.",
            show_default=False,
        ),
    ],
    overrides: Overrides = [],  # noqa: B006  (typer reads it, nobody writes it)
    output: Annotated[
        Path | None, typer.Option(help="A folder for the comparison; by default a new one in results/runs.")
    ] = None,
    fifo: Fifo = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Tell how far the simulator is from a real run: iteration times, bytes by link, accuracy over time.

    Emulation needs root and Mininet, see `dlion emulate`; two runs that are there already need neither.
    """
    from dlion_sim.analysis import compare
    from dlion_sim.cli.tables import fidelity_report
    from dlion_sim.figures import plot_fidelity
    from dlion_sim.results import Run, free_folder
    from dlion_sim.results.atomic import json_bytes, write

    if len(what) == 2 and not overrides and not fifo:
        simulated, real = (Run.open(Path(folder)) for folder in what)
        folder = output or free_folder(RUNS / f"{real.folder.name}-fidelity")
    elif len(what) == 1:
        folder, simulated, real = _run_both(what[0], overrides, output, fifo=fifo, force=force, quiet=quiet)
    else:
        raise InputError(
            f"{len(what)} arguments", allowed="a scenario, or two run folders and neither --set nor --fifo"
        )
    fidelity = compare(simulated, real)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / _DOCUMENT, json_bytes(fidelity.document))
    figure = plot_fidelity(simulated, real, folder / _FIGURE)
    if not quiet:
        Console().print(fidelity_report(fidelity, real, figure))


def _run_both(
    name: str, overrides: list[str], output: Path | None, *, fifo: bool, force: bool, quiet: bool
) -> tuple[Path, Run, Run]:
    from dlion_sim.cli.progress import clock_bar, progress_bar
    from dlion_sim.emulation import check_machine, emulate
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.simulation import simulate

    check_machine()
    with (
        chosen(name, overrides, output, "fidelity") as (scenario, folder),
        Interrupts() as interrupts,
    ):
        with progress_bar(scenario, quiet=quiet) as observe:
            simulated = simulate(
                scenario,
                folder / "simulated",
                force=force,
                device="cpu",
                interrupted=interrupts.asked,
                observe=observe,
            )
        with clock_bar(scenario, quiet=quiet) as observe_clock:
            real = emulate(
                scenario,
                folder / "emulated",
                fair=not fifo,
                force=force,
                interrupted=interrupts.asked,
                observe=observe_clock,
            )
    return folder, simulated, real
