"""Progress bars: of a simulated run, of real nodes, and of a sweep; with a warning where it will take long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from dlion_sim.results.numbers import duration
from dlion_sim.sweep import Ended, Progressed, Started

if TYPE_CHECKING:
    from dlion_sim.scenario import Scenario
    from dlion_sim.simulation import Progress

_WINDOW_SECONDS = 15.0
"""Wall time over which the pace is measured."""
_WINDOWS = 3
_LONG_SECONDS = 1800.0


class Pace:
    """Reports once, and early, the time left for `total`, if it is more than half an hour of wall time.

    Several consecutive windows must be slow, as single ones may include compilation. `clock` is in seconds.
    """

    def __init__(self, total: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._total = total
        self._clock = clock
        self._began: tuple[float, float] | None = None
        self._slow = 0
        """Consecutive slow windows."""
        self._is_reported = False

    def seconds_left(self, done: float) -> float | None:
        """Seconds left at the present pace, if they are to be reported now; `done` may start at any value."""
        now = self._clock()
        if self._began is None:
            self._began = now, done
        began, before = self._began
        if self._is_reported or now - began < _WINDOW_SECONDS or done <= before:
            return None
        self._began = now, done
        left = (self._total - done) * (now - began) / (done - before)
        self._slow = self._slow + 1 if left > _LONG_SECONDS else 0
        self._is_reported = self._slow == _WINDOWS
        return left if self._is_reported else None


@contextmanager
def progress_bar(scenario: Scenario, *, quiet: bool, scored: bool = True) -> Iterator[Callable[[Progress], None]]:
    """Show the progress of a run, with the metric if it is `scored`; yields the function to call with it."""
    if scenario.duration is not None:
        total, unit, key = scenario.duration, "s", "duration"
    else:
        total, unit, key = float(scenario.iterations or 0), "iterations", "iterations"
    console, pace = Console(stderr=True, quiet=quiet), Pace(total)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.1f}/{task.total:g} " + unit),
        *([TextColumn(scenario.workload.evaluated_on + " {task.fields[score]}")] if scored else []),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    bar = Bar(*columns, console=console, disable=quiet)
    with report_compiling(console), ExitStack() as shown:
        task = bar.add_task(f"{scenario.name} · {scenario.system.name}", total=total, score="-")

        def observe(progress: Progress) -> None:
            done = progress.virtual_seconds if scenario.duration is not None else progress.iterations
            if not bar.live.is_started and not quiet:
                shown.enter_context(bar)  # Not shown if a run cannot start.
            score = "-" if progress.score is None else progress.metric.written(progress.score)
            bar.update(task, completed=done, score=f"{progress.metric.name} {score}")
            if (left := pace.seconds_left(done)) is not None:
                rest = f"about {duration(left, 2)} for the rest of {total:g} {unit}"
                line = f"{rest}; --set {key}=... shortens it, a longer workload.evaluate_every may too"
                console.print(line, markup=False, highlight=False, soft_wrap=True)

        yield observe


@contextmanager
def report_compiling(console: Console) -> Iterator[None]:
    """Report on the console that kernels are compiled, which happens once per machine."""
    from numba.core import event

    class CompileListener(event.Listener):
        """Reports the first compilation."""

        said = False

        def on_start(self, _: object) -> None:
            if not self.said:
                console.print("compiling the simulator's kernels, once on this machine: about 15 s", highlight=False)
            self.said = True

        def on_end(self, _: object) -> None:
            pass

    with event.install_listener("numba:compile", CompileListener()):
        yield


@contextmanager
def clock_bar(scenario: Scenario, *, quiet: bool) -> Iterator[Callable[[float | None], None]]:
    """Show the progress of real nodes; yields the function to call with seconds since the start, None before it."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f} s{task.fields[of]}"))
    console = Console(stderr=True)
    # Removed at the end: a failed start is reported in one line.
    with Bar(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        name, total = f"{scenario.name} · {scenario.system.name}", scenario.duration
        task = bar.add_task(f"{name}: starting", total=total, of=f" of {total:g} s" if total else "")

        def observe(seconds: float | None) -> None:
            if seconds is None:
                return
            ended = total is not None and seconds >= total
            doing = "measuring accuracies" if ended else "training"
            bar.update(task, completed=total if ended else seconds, description=f"{name}: {doing}")

        yield observe


_AVERAGE_SECONDS = 24 * 3600.0
"""The time left is estimated from the speed since the start."""


class SweepProgress:
    """Shows the progress of a sweep on standard error, while entered.

    Without a terminal, it prints a line for each run that ends; without `each`, only for those that fail.
    """

    def __init__(self, runs: int, *, title: str = "sweep", each: bool = True, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._bars = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=self._console,
            speed_estimate_period=_AVERAGE_SECONDS,
        )
        self._names_each = each and not self._console.is_terminal
        self._runs = runs
        self._pace = Pace(runs)
        self._ended = self._failed = 0
        self._all = self._bars.add_task(f"[bold]{title}", total=runs, text="")
        self._running: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._update()
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def show(self, event: Started | Progressed | Ended) -> None:
        match event:
            case Started():
                self._running[event.name] = self._bars.add_task(event.name, total=1.0, text="")
            case Progressed():
                self._bars.update(self._running[event.name], completed=event.fraction, text=event.metric_text)
            case Ended():
                self._bars.remove_task(self._running.pop(event.name))
                self._ended += 1
                self._failed += event.status == "failed"
                if event.problem or self._names_each:
                    line = f"{event.name}: {event.status} {event.problem}".rstrip()
                    self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        self._update()

    def _update(self) -> None:
        parts = sum(task.completed for task in self._bars.tasks if task.id in self._running.values())
        text = f"{self._ended} of {self._runs}" + (f", [red]{self._failed} failed[/]" if self._failed else "")
        self._bars.update(self._all, completed=self._ended + parts, text=text)
        if (left := self._pace.seconds_left(self._ended + parts)) is not None:
            rest = f"about {duration(left, 2)} for the rest of {self._runs} runs"
            shorter = "a shorter duration shortens it, a longer workload.evaluate_every may too"
            self._console.print(f"{rest}; {shorter}", highlight=False, soft_wrap=True)
