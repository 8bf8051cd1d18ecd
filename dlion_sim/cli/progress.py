"""The progress bars of runs: in virtual time with how well it does and the wall time left, and in real time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from dlion_sim.cli.slow_runs import Pace, in_words
from dlion_sim.scenario import Scenario
from dlion_sim.simulation import Progress


@contextmanager
def progress_bar(scenario: Scenario, *, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Show how far a run is; the value is what to call with its progress."""
    if scenario.duration is not None:
        total, unit, key = scenario.duration, "s", "duration"
    else:
        total, unit, key = float(scenario.iterations or 0), "iterations", "iterations"
    console, pace = Console(stderr=True, quiet=quiet), Pace(total)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.1f}/{task.total:g} " + unit),
        TextColumn(scenario.workload.evaluated_on + " {task.fields[score]}"),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    bar = Bar(*columns, console=console, disable=quiet)
    with compiling_told(console), ExitStack() as shown:
        task = bar.add_task(f"{scenario.name} · {scenario.system.name}", total=total, score="-")

        def observe(progress: Progress) -> None:
            done = progress.virtual_seconds if scenario.duration is not None else progress.iterations
            if not bar.live.is_started and not quiet:
                shown.enter_context(bar)  # Nothing is left of it where a run could not begin.
            score = "-" if progress.score is None else progress.metric.written(progress.score)
            bar.update(task, completed=done, score=f"{progress.metric.name} {score}")
            if (left := pace.seconds_left(done)) is not None:
                rest = f"about {in_words(left)} for the rest of {total:g} {unit}"
                told = f"{rest}; --set {key}=... shortens it, a longer workload.evaluate_every may too"
                console.print(told, markup=False, highlight=False, soft_wrap=True)

        yield observe


@contextmanager
def compiling_told(console: Console) -> Iterator[None]:
    """Say on the console when kernels are compiled: once on a machine, as they are kept on disk."""
    from numba.core import event

    class JsonDocument(event.Listener):
        """Says it the first time."""

        said = False

        def on_start(self, _: object) -> None:
            if not self.said:
                console.print("compiling the simulator's kernels, once on this machine: about 15 s", highlight=False)
            self.said = True

        def on_end(self, _: object) -> None:
            pass

    with event.install_listener("numba:compile", JsonDocument()):
        yield


@contextmanager
def clock_bar(scenario: Scenario, *, quiet: bool) -> Iterator[Callable[[float | None], None]]:
    """Show how far real nodes are; the value is what to call with the seconds since they began, None before."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f} s{task.fields[of]}"))
    console = Console(stderr=True)
    # Nothing is left of it: whoever could not begin says so in one line.
    with Bar(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        name, duration = f"{scenario.name} · {scenario.system.name}", scenario.duration
        task = bar.add_task(f"{name}: starting", total=duration, of=f" of {duration:g} s" if duration else "")

        def observe(seconds: float | None) -> None:
            if seconds is None:
                return
            ended = duration is not None and seconds >= duration
            doing = "measuring accuracies" if ended else "training"
            bar.update(task, completed=duration if ended else seconds, description=f"{name}: {doing}")

        yield observe
