"""`dlion recommend`: recommends machines and a system."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from dlion_sim.cli.conventions import FAILED, INTERRUPTED
from dlion_sim.cli.executors import Address, ExecutorKind, ExecutorOptions, GpusPerJob, Jobs, RunBy
from dlion_sim.cli.options import ComputesOn, Overrides, Quiet, ScenarioName, seconds_of
from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.recommend import Choices, Goal, Study
    from dlion_sim.sweep import Job

CATALOG = "aws-skypilot"
"""The default: small, and the newest one shipped."""
_COUNTS = "1,2,4"


def recommend(
    scenario: ScenarioName,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder for the runs and the recommendation.", show_default=False),
    ],
    machines: Annotated[
        Literal["catalog", "own"], typer.Option(help="Rent machines of a catalog, or use the scenario's own.")
    ] = "catalog",
    deadline: Annotated[
        str | None,
        typer.Option(
            help="Find the cheapest (own machines without prices: the fastest) that reaches the target "
            "within this time, e.g. 6h.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="Find the fastest that reaches the target within this budget, e.g. 40.", show_default=False),
    ] = None,
    target_accuracy: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE|best",
            help="The target accuracy, e.g. 90; by default the scenario's. On own machines also `best`: what the "
            "best candidate reaches by the deadline; without any target, what the scenario's own system does.",
            show_default=False,
        ),
    ] = None,
    catalog: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help=f"Instances and prices; see `dlion catalogs`; by default {CATALOG}.",
            show_default=False,
        ),
    ] = "",
    instances: Annotated[
        str, typer.Option(help="Instances to try, e.g. p3.2xlarge,r5.4xlarge; by default all.", show_default=False)
    ] = "",
    counts: Annotated[
        str, typer.Option(help=f"Numbers of workers per cloud to try; by default {_COUNTS}.", show_default=False)
    ] = "",
    systems: Annotated[
        str,
        typer.Option(
            help="Systems to try; by default the scenario's, dlion, dlion_sparse, ring_allreduce, local_sgd "
            "and diloco.",
            show_default=False,
        ),
    ] = "",
    overrides: Overrides = [],  # noqa: B006  (only read)
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of the finalists.")] = 3,
    effort: Annotated[
        str | None,
        typer.Option(
            help="Wall time on this machine, e.g. 5min, into which candidates and seeds are to fit.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the candidates.")] = False,
    jobs: Jobs = None,
    device: ComputesOn = "auto",
    executor: RunBy = "local",
    address: Address = None,
    gpus_per_job: GpusPerJob = None,
    quiet: Quiet = False,
) -> None:
    """Recommend machines and a system: the cheapest within a deadline, or the fastest within a budget.

    Candidates are instances of a catalog, their numbers, clouds and systems; with --machines own, systems and learning
    rates on the scenario's machines. The same command continues after Ctrl-C.
    """
    from dlion_sim.cli.recommended import (
        print_candidates,
        print_effort,
        print_recommendation,
        print_refused,
        print_time,
    )
    from dlion_sim.recommend import Choices, write_recommendation
    from dlion_sim.sweep import cores, locked

    own = machines == "own"
    goal = None if own and deadline is None and budget is None else _goal(deadline, budget)
    options = ExecutorOptions(executor, jobs, device, address, gpus_per_job)
    options.check()
    limit = _effort(effort, options.kind)
    if own:
        _refuse_beside_own(catalog=catalog, instances=instances, counts=counts)
    rented = None if own else catalog or CATALOG
    choices = Choices(rented, _listed(instances), _counts(counts or _COUNTS), _listed(systems))
    study = _study(scenario, overrides, target_accuracy, choices, goal, seeds, output)
    study.check()
    side_by_side = options.jobs or cores()
    tells = not quiet and options.kind == "local"
    if dry_run:
        if limit:
            study.limit(limit, side_by_side, options.device)
        elif tells:
            print_time(study, side_by_side, options.device, most=6, watch=2.0)
        if not quiet:
            print_candidates(study)
        return
    with locked(output) as lock:
        if not quiet:
            print_refused(study)
        if limit and study.limit(limit, side_by_side, options.device) and not quiet:
            print_effort(study)
        elif tells and not study.is_begun:
            print_time(study, side_by_side, options.device, most=2, watch=1.0)
        is_done = _run(study, options, lock, quiet=quiet)
        if not is_done:
            if not quiet:
                print("interrupted; the same command continues")
            raise typer.Exit(INTERRUPTED)
        content = write_recommendation(study)
    if not quiet:
        print_recommendation(study, content, Console())
    if content["winner"] is None:
        raise typer.Exit(FAILED)


def _study(
    name: str,
    overrides: Sequence[str],
    target_accuracy: str | None,
    choices: Choices,
    goal: Goal | None,
    seeds: int,
    output: Path,
) -> Study:
    from dlion_sim.analysis.targets import read_accuracy
    from dlion_sim.recommend import BEST, Study, scenario_of
    from dlion_sim.scenario import Scenario, find
    from dlion_sim.scenario.loading import read_data
    from dlion_sim.scenario.overrides import located, overridden, read_all
    from dlion_sim.sweep import Base

    file = find(name)
    data = read_data(file)
    if not isinstance(data, dict):
        raise InputError("is not a scenario", file=file, allowed=", ".join(Scenario.model_fields))
    given, of_all = [*overrides], target_accuracy == BEST
    if of_all and choices.catalog is not None:
        raise InputError(
            f"{BEST} is about own machines", file="`target_accuracy`", allowed="`machines` own, or a value"
        )
    if target_accuracy is not None:
        value = "null" if of_all else read_accuracy(target_accuracy, "target_accuracy")
        given += ["target=null", f"target_accuracy={value}"]
    try:
        return Study(Base(file, overridden(data, given)), choices, goal, seeds, output, of_all=of_all)
    except InputError as error:
        read = data
        own = choices.catalog is None
        fault = located(error, read_all(given), lambda some: scenario_of(Base(file, overridden(read, some)), own=own))
        raise fault.within(file) from None


def _run(study: Study, options: ExecutorOptions, lock: int, *, quiet: bool) -> bool:
    """Do the study's runs; returns whether they were not interrupted."""
    from contextlib import ExitStack

    from dlion_sim.cli.progress import SweepProgress
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.sweep import Executor, run_all

    with Interrupts() as interrupts, ExitStack() as stack:
        opened: list[Executor] = []

        def execute(title: str, jobs: Sequence[Job]) -> bool:
            if not opened:  # Without missing runs, no processes are needed.
                opened.append(stack.enter_context(options.open(len(study.candidates), study.output, lock)))
            with SweepProgress(len(jobs), title=title, each=False, quiet=quiet) as progress:
                for event in run_all(jobs, opened[0], interrupts.asked):
                    progress.show(event)
            return not interrupts.asked()

        return study.run(execute, options.device_of_jobs)


def _goal(deadline: str | None, budget: float | None) -> Goal:
    from dlion_sim.recommend import Goal

    if (deadline is None) == (budget is None):
        problem = "has no bound" if budget is None else "deadline and budget exclude each other"
        raise InputError(problem, allowed="--deadline 6h, or --budget 40")
    if budget is not None:
        if not 0 < budget < math.inf:
            raise InputError(f"{budget:g} is not a budget", file="--budget", allowed="more than 0")
        return Goal(budget=budget)
    return Goal(deadline=_some_time(deadline or "", "--deadline"))


def _refuse_beside_own(**options: str) -> None:
    """Raise InputError for an option that is about rented machines."""
    for name, value in options.items():
        if value:
            raise InputError("is about rented machines", file=f"--{name}", allowed="--machines catalog")


def _effort(given: str | None, kind: ExecutorKind) -> float | None:
    """The wall time (s) of --effort."""
    if given is None:
        return None
    if kind != "local":
        raise InputError("is estimated on this machine only", file="--effort", allowed="--executor local")
    return _some_time(given, "--effort")


def _some_time(written: str, option: str) -> float:
    """The seconds given by an option, more than 0."""
    seconds = seconds_of(written, option)
    if not seconds:
        raise InputError("no time is left", file=option, allowed="more than 0 s")
    return seconds


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _counts(text: str) -> list[int]:
    counts = _listed(text)
    if not counts or not all(part.isdecimal() and int(part) for part in counts):
        raise InputError(f"'{text}' is not a list of numbers", file="--counts", allowed="e.g. 1,2,4")
    return list(dict.fromkeys(map(int, counts)))
