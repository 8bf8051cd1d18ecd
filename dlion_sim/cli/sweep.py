"""`dlion sweep FILE --output DIR`: plans, runs and resumes sweeps."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import HEAVY_HEAD
from rich.console import Console

from dlion_sim.cli.conventions import FAILED, INTERRUPTED, some
from dlion_sim.cli.executors import Address, ExecutorOptions, GpusPerJob, Jobs, RunBy
from dlion_sim.cli.fitting import Fitted
from dlion_sim.cli.options import ComputesOn, Quiet
from dlion_sim.errors import InputError, OwnCodeError

if TYPE_CHECKING:
    from dlion_sim.sweep import Ended, Found, Job, Point, SearchSpec

_MOST_ROWS = 1000
_MOST_EQUAL = 10


def sweep(
    file: Annotated[
        str, typer.Argument(help="A sweep YAML, or the name of a shipped one, e.g. sweeps/digits.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the run folders.", show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the plan.")] = False,
    jobs: Jobs = None,
    device: ComputesOn = "auto",
    executor: RunBy = "local",
    address: Address = None,
    gpus_per_job: GpusPerJob = None,
    quiet: Quiet = False,
) -> None:
    """Run a sweep in parallel: scenarios that differ along axes, or the trials of a search.

    Its YAML has a base scenario, or several, and axes: values by dotted path, all combinations of which are run.
    Further keys: zipped (axes that change together), exclude, names (of run folders), search. `dlion scenarios` lists
    examples. The same command continues after Ctrl-C.
    """
    from dlion_sim.scenario import find_sweep
    from dlion_sim.sweep import State, check, load_search, load_sweep, survey

    options = ExecutorOptions(executor, jobs, device, address, gpus_per_job)
    options.check()
    path = find_sweep(file)
    points = load_sweep(path)
    if search := load_search(path):
        _search(search, points, output, dry_run, options, quiet=quiet)
        return
    if dry_run:
        found = survey(points, output)
        check([point for point in points if found[point.name].state is not State.DONE])
        if not quiet:
            _print_plan(points, found)
            print_preview(points, found, options)
        return
    run_sweep(points, output, options, quiet=quiet)


def run_sweep(points: list[Point], output: Path, options: ExecutorOptions, *, quiet: bool) -> None:
    """Do the missing runs of a sweep, and print the table of all; ends the command unless all of them are done.

    Raises InputError if the sweep cannot be run.
    """
    from dlion_sim.sweep import Job, State, check, locked, survey

    def check_all(missing: Sequence[Point]) -> None:
        check(missing)
        options.check_data(missing)

    with locked(output) as lock:
        found = survey(points, output)
        missing = [point for point in points if found[point.name].state is not State.DONE]
        if not quiet:
            print(_counted(found), flush=True)
            if missing:
                check_all(missing)
                print_preview(points, found, options, in_short=True)
        work = (Job.of(point, output, options.device_of_jobs) for point in missing)
        unchecked = missing if quiet else []
        failures, interrupted = _run(
            work, len(missing), lambda: check_all(unchecked), output, options, lock, quiet=quiet
        )
        found |= survey(missing, output)
    if not quiet:
        _print_results(found)
    if diverged := [name for name, each in found.items() if each.run and each.run.diverged]:
        print(f"dlion: {len(diverged)} of {len(found)} runs diverged: {some(diverged)}", file=sys.stderr)
    _end(output, failures, interrupted=interrupted, failed=bool(failures), quiet=quiet)


def _search(
    spec: SearchSpec, points: list[Point], output: Path, dry_run: bool, options: ExecutorOptions, *, quiet: bool
) -> None:
    from dlion_sim.cli.search import counted, print_best, print_space
    from dlion_sim.sweep import Search, locked

    if dry_run:
        search = Search(spec, points, output, keep=False)
        if search.remaining:
            search.check()
        if not quiet:
            print_space(search)
        return
    with locked(output) as lock:
        search = Search(spec, points, output)
        if not quiet:
            print(counted(search), flush=True)
        runs, work = search.remaining * search.runs_per_trial, search.jobs(options.device_of_jobs)
        failures, interrupted = _run(work, runs, search.check, output, options, lock, quiet=quiet, on_end=search.report)
    if not quiet:
        print_best(search)
    # A diverged trial is not a failure of the search.
    _end(output, search.failures, interrupted=interrupted, failed=bool(failures) or not search.best, quiet=quiet)


def _end(output: Path, failures: Mapping[str, str], *, interrupted: bool, failed: bool, quiet: bool) -> None:
    """Report the end of a sweep, also by exit code."""
    for name, problem in failures.items():
        print(f"dlion: {output / name}: failed: {problem}", file=sys.stderr)
    if interrupted:
        if not quiet:
            print("interrupted; the same command continues")
        raise typer.Exit(INTERRUPTED)
    if failed:
        raise typer.Exit(FAILED)


def _run(
    work: Iterable[Job | None],
    runs: int,
    check: Callable[[], None],
    output: Path,
    options: ExecutorOptions,
    lock: int,
    *,
    quiet: bool,
    on_end: Callable[[Ended], None] = lambda ended: None,
) -> tuple[dict[str, str], bool]:
    """Check and do jobs; returns failures by run, and whether the sweep was interrupted."""
    from dlion_sim.cli.progress import SweepProgress
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.sweep import Ended, run_all

    if not runs:
        return {}, False
    failures: dict[str, str] = {}
    with Interrupts() as interrupts, options.open(runs, output, lock) as executor:
        check()  # while the processes start
        with SweepProgress(runs, quiet=quiet) as progress:
            for event in run_all(work, executor, interrupts.asked):
                progress.show(event)
                if isinstance(event, Ended):
                    on_end(event)
                    if event.status == "failed":
                        failures[event.name] = event.problem
        return failures, interrupts.asked()


def _print_plan(points: list[Point], found: dict[str, Found]) -> None:
    from dlion_sim.results import headings

    axes = [axis for axis in points[0].labels if len({point.labels[axis] for point in points}) > 1]
    rows = [
        [point.name, *(point.labels[axis] for axis in axes), found[point.name].state.value]
        for point in points[:_MOST_ROWS]
    ]
    columns = ["run", *(heading.replace("_", " ") for heading in headings(axes).values()), "state"]
    Console().print(Fitted(columns, rows, box=HEAVY_HEAD))
    if len(points) > _MOST_ROWS:
        print(f"... and {len(points) - _MOST_ROWS} more")
    print(_counted(found))


def print_preview(
    points: Sequence[Point], found: Mapping[str, Found], options: ExecutorOptions, *, in_short: bool = False
) -> None:
    """Print which checked points are equal, and the wall time of the missing ones.

    `in_short`, measuring takes some seconds, else about ten.
    """
    from dlion_sim.sweep import equal_points

    same = equal_points(points)
    for first, *others in same[:_MOST_EQUAL]:
        print(f"the same scenario, and so the same results: {', '.join([first, *others])}")
    if len(same) > _MOST_EQUAL:
        print(f"... and {len(same) - _MOST_EQUAL} more such groups")
    try:
        if words := estimated(points, found, options, in_short=in_short):
            print(f"the rest takes {words}", flush=True)
    except (InputError, OwnCodeError) as error:
        print(f"the wall time is unknown: {error}", flush=True)


def estimated(points: Sequence[Point], found: Mapping[str, Found], options: ExecutorOptions, *, in_short: bool) -> str:
    """The wall time of missing points, as text; empty for a cluster, or if all are done.

    `in_short`, measuring takes some seconds, else about ten. Raises InputError if a run cannot be started.
    """
    from dlion_sim.sweep import State, cores, estimate

    if options.kind != "local" or all(each.state is State.DONE for each in found.values()):
        return ""
    jobs = options.jobs or cores()
    effort: dict[str, Any] = {"most": 2, "watch": 1.0} if in_short else {}
    takes = estimate(points, found, jobs=jobs, device=options.device, **effort)
    return f"{takes.text} on this machine, {jobs} in parallel"


def _counted(found: dict[str, Found]) -> str:
    """E.g. "24 runs: 20 done, 1 failed, 3 to do"."""
    counts = Counter(each.state.value for each in found.values())
    states = ", ".join(
        f"{counts[state]} {state}" for state in ("done", "interrupted", "failed", "to do") if counts[state]
    )
    return f"{len(found)} run{'s' * (len(found) != 1)}: {states}"


def _print_results(found: dict[str, Found]) -> None:
    from dlion_sim.cli.compare import print_comparison
    from dlion_sim.sweep import State

    if any(each.state is State.DONE for each in found.values()):
        print_comparison([each.run for each in found.values() if each.run])
