"""A search as a source of jobs: results of runs determine the next values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from dlion_sim.errors import InputError
from dlion_sim.results import Run
from dlion_sim.sweep import metric, space
from dlion_sim.sweep.axes import Value
from dlion_sim.sweep.checking import check
from dlion_sim.sweep.job import Ended, Job
from dlion_sim.sweep.loading import SearchSpec
from dlion_sim.sweep.points import Point
from dlion_sim.sweep.state import State, survey
from dlion_sim.sweep.study import Study

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


@dataclass(frozen=True)
class Trial:
    """A trial: its values and result."""

    number: int
    points: Sequence[Point]
    """The points of the sweep with these values."""
    labels: Mapping[str, str]
    """Labels of the values, by path."""
    state: Literal["under way", "failed", "done"]
    value: float | None
    """The mean over the runs of a completed trial."""


class Search:
    """The trials of a search in a folder, and its next runs."""

    def __init__(self, spec: SearchSpec, points: Sequence[Point], output: Path, *, keep: bool = True) -> None:
        """Open or start the search of these points in `output`; unless `keep`, without writing there.

        Raises InputError if Optuna is missing, or if the content of `output` cannot be read or is of another search.
        """
        self.spec = spec
        self.failures: dict[str, str] = {}
        """Why trials failed in this process, by run."""
        self._points = points
        self._output = output
        self._study = Study(spec, output, keep=keep)
        self._active: dict[int, _Active] = {}
        meant = {**spec.model_dump(mode="json", by_alias=True, exclude={"trials"}), "evaluated_on": "validation"}
        self._study.require("search", meant)
        # Runs tell what changed in a base, by their own scenarios: the points' may be invalid without searched values.
        survey([point for trial in self.trials for point in trial.points], output)
        self._study.require("points", sorted(point.name for point in points))

    @property
    def trials(self) -> list[Trial]:
        """The trials so far, in order."""
        return [self._trial(kept) for kept in self._study.trials]

    @property
    def runs_per_trial(self) -> int:
        return len(self._points)

    @property
    def best(self) -> list[tuple[float, Trial]]:
        """The results of completed trials, the best first, equal ones in order."""
        done = [(trial.value, trial) for trial in self.trials if trial.value is not None]
        # Sorting keeps the order of equals, reversed or not.
        return sorted(done, key=itemgetter(0), reverse=metric.direction(self.spec.metric) == "maximize")

    def runs(self, trial: Trial) -> list[Run]:
        return [Run.open(self._output / point.name) for point in trial.points]

    @property
    def remaining(self) -> int:
        """Number of trials that have not ended."""
        return max(0, self.spec.trials - sum(trial.state != "under way" for trial in self.trials))

    def check(self) -> None:
        """Raise InputError if a value, or an end of an interval, is invalid for its path.

        Also without validation samples: choosing by the test set would bias its results.
        """
        ends = {path: space.extremes(dimension) for path, dimension in self.spec.over.items()}
        probes = [{path: values[0] for path, values in ends.items()}]
        probes += [{**probes[0], path: value} for path, values in ends.items() for value in values[1:]]
        tried = [self._tried(point, 0, values) for values in probes for point in self._points]
        check(tried)
        for point in tried:
            if not point.scenario().workload.validation:
                raise point.located(
                    InputError(
                        "a search needs validation samples, so as not to choose by the test set",
                        path="workload.validation",
                        allowed=f"more than 0, up to 0.5, here or as an axis of {point.sweep.name}, e.g. [0.1]",
                    )
                )

    def jobs(self, device: Literal["auto", "cpu", "cuda"]) -> Iterator[Job | None]:
        """The missing runs; None if there are none until another run has ended.

        Runs of unfinished trials of a former start come first. `report` must be called when one has ended. Raises
        InputError for a folder that cannot be used.
        """
        for trial in self.trials:
            if trial.state == "under way":
                self._begin(trial, device)
        while True:
            if waiting := next((active.waiting for active in self._active.values() if active.waiting), None):
                yield waiting.pop(0)
            elif len(self._study.trials) < self.spec.trials:
                self._begin(self._trial(self._study.ask()), device)
            elif self._active:
                yield None
            else:
                return

    def report(self, ended: Ended) -> None:
        """Process the end of a run."""
        active = next((active for active in self._active.values() if ended.name in active.missing), None)
        if active is None or ended.status == "interrupted":
            return  # Its trial has failed already, or the next start continues it.
        if ended.status == "failed":
            self._fail(active.trial, ended.name, ended.problem)
            return
        active.missing.remove(ended.name)
        if not active.missing:
            self._measure(active.trial)

    def _begin(self, trial: Trial, device: Literal["auto", "cpu", "cuda"]) -> None:
        found = survey(trial.points, self._output)
        waiting = []
        for point in trial.points:
            if found[point.name].state is State.DONE:
                continue
            try:
                waiting.append(Job.of(point, self._output, device))
            except InputError as error:  # Valid values whose combination is invalid.
                self._fail(trial, point.name, str(error))
                return
        if waiting:
            self._active[trial.number] = _Active(trial, waiting, {job.name for job in waiting})
        else:  # A kill came after its last run.
            self._measure(trial)

    def _measure(self, trial: Trial) -> None:
        measured = []
        for point in trial.points:
            try:
                measured.append(metric.measure(self.spec.metric, Run.open(self._output / point.name)))
            except (ValueError, InputError) as error:
                self._fail(trial, point.name, str(error))
                return
        self._active.pop(trial.number, None)
        self._study.succeed(trial.number, fmean(measured))

    def _fail(self, trial: Trial, run: str, problem: str) -> None:
        self._active.pop(trial.number, None)
        self.failures[run] = problem
        self._study.fail(trial.number)

    def _trial(self, kept: FrozenTrial) -> Trial:
        values = {path: space.value(dimension, kept.params[path]) for path, dimension in self.spec.over.items()}
        return Trial(
            number=kept.number,
            points=[self._tried(point, kept.number, values) for point in self._points],
            labels={path: label for path, (label, _) in values.items()},
            state=_STATES[kept.state.name],
            value=kept.value,
        )

    def _tried(self, point: Point, number: int, values: Mapping[str, Value]) -> Point:
        name = f"trial-{number:04d}" + (f"-{point.name}" if len(self._points) > 1 else "")
        labels = {path: label for path, (label, _) in values.items()}
        return point.chosen(
            name, {"trial": str(number), **labels}, {path: value for path, (_, value) in values.items()}
        )


@dataclass(frozen=True)
class _Active:
    """A trial in progress."""

    trial: Trial
    waiting: list[Job]
    missing: set[str]
    """The runs that are not completed, including waiting ones."""


_STATES: Mapping[str, Literal["under way", "failed", "done"]] = {
    "RUNNING": "under way",
    "FAIL": "failed",
    "COMPLETE": "done",
}
