"""`dlion reproduce [NAMES...]`: papers' experiments, run again and judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import HEAVY_HEAD
from rich.console import Console

from dlion_sim.cli.executors import Address, ComputesOn, ExecutorKind, ExecutorOptions, GpusPerJob, Jobs, RunBy
from dlion_sim.cli.fitting import Fitted
from dlion_sim.cli.options import Device, Quiet
from dlion_sim.cli.sweep import run_sweep
from dlion_sim.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlion_sim.reproduction import Experiment


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments, e.g. E6; by default they are listed.", show_default=False)
    ] = None,
    runs: Annotated[Path, typer.Option(help="The folder for run folders, below it one for each experiment.")] = Path(
        "results/runs/reproduction"
    ),
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for tables, figures and verdicts.")] = Path(
        "results"
    ),
    jobs: Jobs = None,
    device: ComputesOn = Device.AUTO,
    executor: RunBy = ExecutorKind.LOCAL,
    address: Address = None,
    gpus_per_job: GpusPerJob = None,
    quiet: Quiet = False,
) -> None:
    """Run papers' experiments again, and judge what they claim: a table, a figure and verdicts for each.

    Each is a sweep of `scenarios/reproduction`. Started again, it does only what is missing, and writes the pages anew.
    """
    from dlion_sim.reproduction import experiments, write_collection

    known = experiments()
    if not names:
        _print_list(known)
        return
    for name in names:
        if name not in known:
            raise InputError(f"no such experiment{did_you_mean(name, known)}", file=name, allowed=", ".join(known))
    options = ExecutorOptions(executor, jobs, device, address, gpus_per_job)
    options.check()
    for name in names:
        _reproduce(name, known[name], runs / name, output, options, quiet=quiet)
    write_collection(known, output, "dlion reproduce NAME")


def _reproduce(
    name: str, experiment: Experiment, runs: Path, output: Path, options: ExecutorOptions, *, quiet: bool
) -> None:
    from dlion_sim.reproduction import write_experiment
    from dlion_sim.reproduction.claims import sweep_of
    from dlion_sim.results import Run, find_runs
    from dlion_sim.sweep import load_sweep

    if not quiet:
        print(f"{name}: {experiment.title}", flush=True)
    run_sweep(load_sweep(sweep_of(name)), runs, options, quiet=quiet)
    write_experiment(
        name, experiment, [Run.open(folder) for folder in find_runs([runs])], output / name, f"dlion reproduce {name}"
    )
    if not quiet:
        print(f"written: {output / name}")


def _print_list(known: Mapping[str, Experiment]) -> None:
    rows = [[name, experiment.title, experiment.paper] for name, experiment in known.items()]
    Console().print(Fitted(["name", "about", "the paper"], rows, box=HEAVY_HEAD))
