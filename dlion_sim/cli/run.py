"""`dlion run`: runs a scenario in virtual time, or resumes a run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dlion_sim.cli.options import ComputesOn, Device, Force, Output, Overrides, Quiet, ScenarioNameIfAny
from dlion_sim.cli.scenario_runs import chosen, report
from dlion_sim.errors import InputError


def run(
    scenario: ScenarioNameIfAny = None,
    overrides: Overrides = [],  # noqa: B006  (only read)
    output: Output = None,
    device: ComputesOn = "auto",
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds of wall time between two checkpoints; 0 for none.", min=0)
    ] = 60.0,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Resume the run in a folder, after an interrupt or a kill.", show_default=False
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Run a scenario in virtual time and write its run folder.

    Ctrl-C ends the run early; --resume continues from there, or after a kill from the last checkpoint.
    """
    if resume is not None:
        _refuse_with_resume(scenario, overrides, output, device, force=force)
    elif scenario is None:
        raise InputError("is missing", file="SCENARIO", allowed="a scenario, or --resume DIR")
    # The heavy imports wait until there is something to run.
    from dlion_sim.cli.progress import progress_bar
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.own_code import own_errors_told
    from dlion_sim.results import Run
    from dlion_sim.results.run_folder import SCENARIO
    from dlion_sim.scenario import load
    from dlion_sim.simulation import resume as resume_run
    from dlion_sim.simulation import simulate

    every = checkpoint_every or None
    if resume is not None:
        loaded = load(Run.open(resume).folder / SCENARIO)
        with (
            own_errors_told(loaded.references),
            Interrupts() as interrupts,
            progress_bar(loaded, quiet=quiet) as observe,
        ):
            done = resume_run(resume, checkpoint_every=every, interrupted=interrupts.asked, observe=observe)
    else:
        with (
            chosen(scenario or "", overrides, output) as (loaded, folder),
            Interrupts() as interrupts,
            progress_bar(loaded, quiet=quiet) as observe,
        ):
            done = simulate(
                loaded,
                folder,
                device=device,
                force=force,
                checkpoint_every=every,
                interrupted=interrupts.asked,
                observe=observe,
            )
    report(done, quiet=quiet)


def _refuse_with_resume(
    scenario: str | None, overrides: Sequence[str], output: Path | None, device: Device, *, force: bool
) -> None:
    """Raise InputError for options that a resumed run already has."""
    given = [
        f"a scenario, '{scenario}'" * (scenario is not None),
        " ".join(f"--set {shlex.quote(each)}" for each in overrides),
        f"--output {output}" * (output is not None),
        "--force" * force,
        f"--device {device}" * (device != "auto"),
    ]
    for option in filter(None, given):
        raise InputError(f"does not go with {option}", file="--resume", allowed="--checkpoint-every, --quiet")
