"""`dlion reproduce [NAMES...]`: repeats papers' experiments and checks their claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import HEAVY_HEAD
from rich.console import Console
from rich.progress import track

from dlion_sim.cli.executors import Address, ExecutorOptions, GpusPerJob, Jobs, RunBy
from dlion_sim.cli.fitting import Fitted
from dlion_sim.cli.options import ComputesOn, Quiet
from dlion_sim.cli.sweep import estimated, run_sweep
from dlion_sim.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from dlion_sim.studies.reproduction import Repeated
    from dlion_sim.sweep import Point


@dataclass(frozen=True)
class _Plan:
    """An experiment or a table to repeat, in full or short."""

    repeated: Repeated
    points: list[Point]
    runs: Path
    """Folder of its run folders."""
    again: str
    """The command that runs it."""
    mark: str = ""
    """Mark of its verdicts."""


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Experiments and tables, e.g. E6; by default they are listed.", show_default=False),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for tables, figures and verdicts.")] = Path(
        "reproduction"
    ),
    runs: Annotated[
        Path | None,
        typer.Option(
            help="The folder for run folders; by default `runs` in the output.",
            show_default=False,
        ),
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="One seed and a tenth of each duration; verdicts are marked as such.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the plan; by default of all experiments.")
    ] = False,
    jobs: Jobs = None,
    device: ComputesOn = "auto",
    executor: RunBy = "local",
    address: Address = None,
    gpus_per_job: GpusPerJob = None,
    quiet: Quiet = False,
) -> None:
    """Repeat papers' experiments and tables, and check their claims and numbers: a page with verdicts for each.

    An experiment is a sweep (`dlion sweep reproduction/NAME`); of tables, simulations are (reproduction/tables/NAME).
    Started again, it does only what is missing, and rewrites the pages.
    """
    from dlion_sim.studies.reproduction import in_short, repeated, short_name, write_collection

    known = repeated()
    if not names and not dry_run:
        _print_list(known)
        return
    for name in names or ():
        if name not in known:
            raise InputError(
                f"no such experiment or table{did_you_mean(name, known)}", file=name, allowed=", ".join(known)
            )
    options = ExecutorOptions(executor, jobs, device, address, gpus_per_job)
    options.check()
    plans = dict(_plan(name, known[name], runs or output / "runs", short=short) for name in names or known)
    if dry_run:
        _show(plans, options, quiet=quiet)
        return
    options.check_data([point for plan in plans.values() for point in plan.points])
    for name, plan in plans.items():
        _reproduce(name, plan, output / name, options, quiet=quiet)
    shorts = {short_name(name): in_short(each) for name, each in known.items()}
    write_collection({**known, **shorts}, output, "dlion reproduce NAME")


def _plan(name: str, each: Repeated, runs: Path, *, short: bool) -> tuple[str, _Plan]:
    from dlion_sim.studies.reproduction import MARK, in_short, points_of, short_name

    points = points_of(name, short=short)
    if not short:
        return name, _Plan(each, points, runs / name, f"dlion reproduce {name}")
    named = short_name(name)
    return named, _Plan(in_short(each), points, runs / named, f"dlion reproduce {name} --short", MARK)


def _show(plans: Mapping[str, _Plan], options: ExecutorOptions, *, quiet: bool) -> None:
    """Check the plans, and print their numbers of runs and wall times."""
    from dlion_sim.sweep import State, check, survey

    if not quiet:
        options.check_data([point for plan in plans.values() for point in plan.points])
    rows = []
    shown = track(plans.items(), "estimating", console=Console(stderr=True), transient=True, disable=quiet)
    for name, plan in shown:
        found = survey(plan.points, plan.runs)
        missing = [point for point in plan.points if found[point.name].state is not State.DONE]
        check(missing)
        if not quiet:
            takes = estimated(plan.points, found, options, in_short=len(plans) > 1)
            rows.append([name, plan.repeated.title, str(len(plan.points)), str(len(missing)), takes])
    headings = ["name", "about", "runs", "to do", "takes"]
    if not quiet:
        Console().print(Fitted(headings, rows, numbers=["runs", "to do"], box=HEAVY_HEAD))


def _reproduce(name: str, plan: _Plan, folder: Path, options: ExecutorOptions, *, quiet: bool) -> None:
    from dlion_sim.results import Run, find_runs
    from dlion_sim.studies.reproduction import write_results

    if not quiet:
        print(f"{name}: {plan.repeated.title}", flush=True)
    if plan.points:
        run_sweep(plan.points, plan.runs, options, quiet=quiet)
    runs = [Run.open(found) for found in find_runs([plan.runs])] if plan.points else []
    write_results(name, plan.repeated, runs, folder, plan.again, plan.mark)
    if not quiet:
        print(f"written: {folder}")


def _print_list(known: Mapping[str, Repeated]) -> None:
    rows = [[name, each.title, each.repeats, each.paper] for name, each in known.items()]
    Console().print(Fitted(["name", "about", "repeats", "the paper reports"], rows, box=HEAVY_HEAD))
