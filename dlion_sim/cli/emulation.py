"""The command that runs real nodes over an emulated network, or opens Mininet's command line on it."""

from __future__ import annotations

from typing import Annotated

import typer

from dlion_sim.cli.live import Pacing, Silence
from dlion_sim.cli.options import (
    ComputesOn,
    Device,
    Fifo,
    Force,
    Output,
    Overrides,
    Quiet,
    ScenarioNameIfAny,
    StartWithin,
)
from dlion_sim.cli.scenario_runs import chosen, report
from dlion_sim.errors import InputError

Start = Annotated[bool, typer.Option("--start", help="Run the scenario while the command line is open.")]


def emulate(
    scenario: ScenarioNameIfAny = None,
    overrides: Overrides = [],  # noqa: B006  (typer reads it, nobody writes it)
    output: Output = None,
    device: ComputesOn = Device.AUTO,
    pacing: Pacing = True,
    fifo: Fifo = False,
    start_within: StartWithin = 60.0,
    silence: Silence = None,
    force: Force = False,
    quiet: Quiet = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Only remove what emulations have left that were killed.")
    ] = False,
    cli: Annotated[
        bool, typer.Option("--cli", help="Open Mininet's command line on the network, on which nothing else runs.")
    ] = False,
    start: Start = False,
) -> None:
    """Run a scenario in real time over the network that it describes, emulated on this machine. Needs root.

    Ctrl-C ends the run early; what was measured stays readable. What an emulation that was killed has left is removed
    when the next one begins, or by --clean.
    """
    from dlion_sim.cli.progress import clock_bar
    from dlion_sim.emulation import check_requirements, remove_leftovers
    from dlion_sim.emulation import emulate as emulate_run
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.live import Timeouts

    if start and not cli:
        raise InputError("--start is for --cli", file="dlion emulate", allowed="neither: a scenario is run anyway")
    check_requirements(paced=pacing, by_hand=cli)
    if clean:
        count = remove_leftovers()
        if not quiet:
            print(f"removed the leftovers of {count} emulation{'' if count == 1 else 's'}")
        return
    if scenario is None:
        raise InputError("names no scenario", file="dlion emulate", allowed="a YAML file, a name, or --clean")
    meanwhile = None
    if cli:
        from dlion_sim.emulation.console import obey, open_console

        if not start:
            with chosen(scenario, overrides, output) as (loaded, _):
                open_console(loaded, fair=not fifo)
            return
        meanwhile = obey
    with (
        chosen(scenario, overrides, output, "emulate") as (loaded, folder),
        Interrupts() as interrupts,
        clock_bar(loaded, quiet=quiet or cli) as observe,
    ):
        done = emulate_run(
            loaded,
            folder,
            device=device.value,
            paced=pacing,
            fair=not fifo,
            timeouts=Timeouts.of(loaded, start=start_within, silence=silence),
            force=force,
            interrupted=interrupts.asked,
            observe=observe,
            meanwhile=meanwhile,
        )
    report(done, quiet=quiet)
