"""`dlion run`: runs a scenario in virtual time, or resumes a run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlion_sim.cli.options import ComputesOn, Device, Force, Output, Overrides, Quiet, ScenarioNameIfAny
from dlion_sim.cli.scenario_runs import chosen, report
from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.results import Run


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
    every = checkpoint_every or None
    if resume is not None:
        _refuse_with_resume(scenario, overrides, output, device, force=force)
        done = _resume(resume, every, quiet=quiet)
    elif scenario is not None:
        done = _simulate(scenario, overrides, output, device, every, force=force, quiet=quiet)
    else:
        raise InputError("is missing", file="SCENARIO", allowed="a scenario, or --resume DIR")
    report(done, quiet=quiet)


# The heavy imports wait until there is something to run, so that --help answers at once.


def _simulate(
    name: str,
    overrides: Sequence[str],
    output: Path | None,
    device: Device,
    checkpoint_every: float | None,
    *,
    force: bool,
    quiet: bool,
) -> Run:
    from dlion_sim.cli.progress import progress_bar
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.simulation import simulate

    with (
        chosen(name, overrides, output) as (scenario, folder),
        Interrupts() as interrupts,
        progress_bar(scenario, quiet=quiet) as observe,
    ):
        return simulate(
            scenario,
            folder,
            device=device,
            force=force,
            checkpoint_every=checkpoint_every,
            interrupted=interrupts.asked,
            observe=observe,
        )


def _resume(folder: Path, checkpoint_every: float | None, *, quiet: bool) -> Run:
    from dlion_sim.cli.progress import progress_bar
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.own_code import own_errors_told
    from dlion_sim.results import Run
    from dlion_sim.results.run_folder import SCENARIO
    from dlion_sim.scenario import load
    from dlion_sim.simulation import resume

    scenario = load(Run.open(folder).folder / SCENARIO)
    with (
        own_errors_told(scenario.references),
        Interrupts() as interrupts,
        progress_bar(scenario, quiet=quiet) as observe,
    ):
        return resume(folder, checkpoint_every=checkpoint_every, interrupted=interrupts.asked, observe=observe)


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
