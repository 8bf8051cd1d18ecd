"""The live table of a sweep: what runs and how far, how much is done, how long it takes."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from dlion_sim.cli.slow_runs import Pace, in_words
from dlion_sim.sweep import Ended, Progressed, Started

_AVERAGE_SECONDS = 24 * 3600.0
"""What remains is estimated by the speed since the start."""


class SweepProgress:
    """Shows the progress of a sweep of so many runs on standard error, while entered.

    Where that is no terminal, it gets a line for each run that ends; without `each`, for those only that fail.
    """

    def __init__(self, runs: int, *, title: str = "sweep", each: bool = True, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[told]}"),
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
        self._all = self._bars.add_task(f"[bold]{title}", total=runs, told="")
        self._running: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._tell_all()
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def show(self, event: Started | Progressed | Ended) -> None:
        """Take in what has happened."""
        match event:
            case Started():
                self._running[event.name] = self._bars.add_task(event.name, total=1.0, told="")
            case Progressed():
                self._bars.update(self._running[event.name], completed=event.fraction, told=event.told)
            case Ended():
                self._bars.remove_task(self._running.pop(event.name))
                self._ended += 1
                self._failed += event.status == "failed"
                if event.problem or self._names_each:
                    line = f"{event.name}: {event.status} {event.problem}".rstrip()
                    self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        self._tell_all()

    def _tell_all(self) -> None:
        parts = sum(task.completed for task in self._bars.tasks if task.id in self._running.values())
        told = f"{self._ended} of {self._runs}" + (f", [red]{self._failed} failed[/]" if self._failed else "")
        self._bars.update(self._all, completed=self._ended + parts, told=told)
        if (left := self._pace.seconds_left(self._ended + parts)) is not None:
            rest = f"about {in_words(left)} for the rest of {self._runs} runs"
            shorter = "a shorter duration shortens it, a longer workload.evaluate_every may too"
            self._console.print(f"{rest}; {shorter}", highlight=False, soft_wrap=True)
