"""`dlion sweep FILE --output DIR`: plan, run side by side, resume."""

from __future__ import annotations

import sys
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from dlion_sim.cli.conventions import FAILED, INTERRUPTED

if TYPE_CHECKING:
    from dlion_sim.sweep import Found, Point

_MOST_ROWS = 1000


class Device(StrEnum):
    """Where gradients are computed."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


def sweep(
    file: Annotated[
        str, typer.Argument(help="A sweep YAML, or the name of one that ships, e.g. sweeps/digits.", show_default=False)
    ],
    output: Annotated[Path, typer.Option(help="The folder for the run folders.", show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the plan.")] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs side by side; by default one a core.", show_default=False)
    ] = None,
    device: Annotated[Device, typer.Option(help="Where gradients are computed.")] = Device.AUTO,
) -> None:
    """Run a sweep: scenarios that differ along axes, side by side.

    Started again, it does only what is missing. Ctrl-C ends it early; what was done stays.
    """
    from dlion_sim.scenario import find_sweep
    from dlion_sim.sweep import State, check, load_sweep, locked, survey

    points = load_sweep(find_sweep(file))
    if dry_run:
        found = survey(points, output)
        check([point for point in points if found[point.name].state is not State.DONE])
        _print_plan(points, found)
        return
    with locked(output) as lock:
        found = survey(points, output)
        missing = [point for point in points if found[point.name].state is not State.DONE]
        print(_counted(found), flush=True)
        failures, interrupted = _run(missing, output, jobs, device, lock) if missing else ({}, False)
        found |= survey(missing, output)
    _print_results(found)
    for name, problem in failures.items():
        print(f"dlion: {output / name}: failed: {problem}", file=sys.stderr)
    if interrupted:
        print("interrupted; the same command goes on")
        raise typer.Exit(INTERRUPTED)
    if failures:
        raise typer.Exit(FAILED)


def _run(points: list[Point], output: Path, jobs: int | None, device: Device, lock: int) -> tuple[dict[str, str], bool]:
    """Run what is missing; why runs failed, by name, and whether the sweep was interrupted."""
    from dlion_sim.cli.interrupts import Interrupts
    from dlion_sim.cli.sweep_progress import SweepProgress
    from dlion_sim.sweep import Ended, Job, LocalProcesses, check, cores, run_all

    processes = min(jobs or cores(), len(points))
    threads = max(1, cores() // processes)
    failures: dict[str, str] = {}
    log = output / "workers.log"
    with Interrupts() as interrupts, LocalProcesses(processes, threads, lock=lock, log=log) as executor:
        check(points)  # while the processes get ready
        work = (Job.of(point, output, device.value) for point in points)
        with SweepProgress(len(points)) as progress:
            for event in run_all(work, executor, interrupts.asked):
                progress.show(event)
                if isinstance(event, Ended) and event.status == "failed":
                    failures[event.name] = event.problem
        return failures, interrupts.asked()


def _print_plan(points: list[Point], found: dict[str, Found]) -> None:
    axes = [axis for axis in points[0].labels if len({point.labels[axis] for point in points}) > 1]
    table = Table("run", *(axis.rsplit(".", 1)[-1].replace("_", " ") for axis in axes), "state")
    for point in points[:_MOST_ROWS]:
        table.add_row(point.name, *(point.labels[axis] for axis in axes), found[point.name].state.value)
    Console().print(table)
    if len(points) > _MOST_ROWS:
        print(f"... and {len(points) - _MOST_ROWS} more")
    print(_counted(found))


def _counted(found: dict[str, Found]) -> str:
    """E.g. "24 runs: 20 done, 1 failed, 3 to do"."""
    counts = Counter(each.state.value for each in found.values())
    told = ", ".join(
        f"{counts[state]} {state}" for state in ("done", "interrupted", "failed", "to do") if counts[state]
    )
    return f"{len(found)} run{'s' * (len(found) != 1)}: {told}"


def _print_results(found: dict[str, Found]) -> None:
    from dlion_sim.cli.compare import print_comparison
    from dlion_sim.sweep import State

    if any(each.state is State.DONE for each in found.values()):
        print_comparison([each.run for each in found.values() if each.run])
