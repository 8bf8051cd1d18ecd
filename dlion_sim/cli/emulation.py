"""`dlion emulate`: runs real nodes over an emulated network, or opens Mininet's command line on it."""

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
    overrides: Overrides = [],  # noqa: B006  (only read)
    output: Output = None,
    device: ComputesOn = Device.AUTO,
    pacing: Pacing = True,
    fifo: Fifo = False,
    start_within: StartWithin = 60.0,
    silence: Silence = None,
    force: Force = False,
    quiet: Quiet = False,
    clean: Annotated[bool, typer.Option("--clean", help="Only remove the leftovers of killed emulations.")] = False,
    cli: Annotated[
        bool, typer.Option("--cli", help="Open Mininet's command line on the network, without a run.")
    ] = False,
    start: Start = False,
) -> None:
    """Run a scenario in real time over its network, emulated on this machine. Needs root.

    Ctrl-C ends the run early; its results stay readable. The next emulation, or --clean, removes what a killed one
    left.
    """
    from dlion_sim.cli.progress import clock_bar
    from dlion_sim.emulation import check_requirements, remove_leftovers
    from dlion_sim.emulation import emulate as emulate_run
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.live import Timeouts

    if start and not cli:
        raise InputError("--start requires --cli", file="dlion emulate", allowed="neither, to run the scenario")
    check_requirements(paced=pacing, by_hand=cli)
    if clean:
        count = remove_leftovers()
        if not quiet:
            print(f"removed the leftovers of {count} emulation{'' if count == 1 else 's'}")
        return
    if scenario is None:
        raise InputError("has no scenario", file="dlion emulate", allowed="a YAML file, a name, or --clean")
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
