"""The command that runs real nodes over an emulated network."""

from __future__ import annotations

from typing import Annotated

import typer

from dlion_sim.cli.chosen import chosen
from dlion_sim.cli.live import Pacing, Silence, StartWithin, report
from dlion_sim.cli.options import Fifo, Force, Output, Overrides, Quiet, ScenarioNameIfAny
from dlion_sim.errors import InputError


def emulate(
    scenario: ScenarioNameIfAny = None,
    overrides: Overrides = [],  # noqa: B006  (typer reads it, nobody writes it)
    output: Output = None,
    pacing: Pacing = True,
    fifo: Fifo = False,
    start_within: StartWithin = 60.0,
    silence: Silence = 30.0,
    force: Force = False,
    quiet: Quiet = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Only remove what emulations have left that were killed.")
    ] = False,
) -> None:
    """Run a scenario in real time over the network that it describes, emulated on this machine. Needs root.

    Ctrl-C ends the run early; what was measured stays readable. What an emulation that was killed has left is removed
    when the next one begins, or by --clean.
    """
    from dlion_sim.cli.progress import clock_bar
    from dlion_sim.emulation import check_machine, remove_leftovers
    from dlion_sim.emulation import emulate as emulate_run
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.live import Patience

    check_machine(paced=pacing)
    if clean:
        count = remove_leftovers()
        if not quiet:
            print(f"removed the leftovers of {count} emulation{'' if count == 1 else 's'}")
        return
    if scenario is None:
        raise InputError("names no scenario", file="dlion emulate", allowed="a YAML file, a name, or --clean")
    with (
        chosen(scenario, overrides, output, "emulate") as (loaded, folder),
        Interrupts() as interrupts,
        clock_bar(loaded, quiet=quiet) as observe,
    ):
        done = emulate_run(
            loaded,
            folder,
            paced=pacing,
            fair=not fifo,
            patience=Patience(start=start_within, silence=silence),
            force=force,
            interrupted=interrupts.asked,
            observe=observe,
        )
    report(done, quiet=quiet)
