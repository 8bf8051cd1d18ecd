"""A search as a source of jobs: what runs came to makes the values that are tried next."""

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
    """Values that are tried, and what they came to."""

    number: int
    points: Sequence[Point]
    """What is run: the points of the sweep with these values."""
    labels: Mapping[str, str]
    """What the values are called, by path."""
    state: Literal["under way", "failed", "done"]
    value: float | None
    """The mean over the runs of a trial that is done."""


class Search:
    """The trials of a search in a folder, and the runs that are next."""

    def __init__(self, spec: SearchSpec, points: Sequence[Point], output: Path, *, keep: bool = True) -> None:
        """Take up the search of these points in `output`, begun or not; unless `keep`, without writing there.

        Raises InputError where Optuna is missing, or what is in `output` cannot be read or is of another search.
        """
        self.spec = spec
        self.failures: dict[str, str] = {}
        """Why trials failed since, by the run to blame."""
        self._points = points
        self._output = output
        self._study = Study(spec, output, keep=keep)
        self._begun: dict[int, _Begun] = {}
        meant = {**spec.model_dump(mode="json", by_alias=True, exclude={"trials"}), "evaluated_on": "validation"}
        self._study.hold_to("search", meant)
        survey([point for trial in self.trials for point in trial.points], output)  # tells what changed in a base
        self._study.hold_to("points", {point.name: point.digest for point in points})

    @property
    def trials(self) -> list[Trial]:
        """Those so far, in order."""
        return [self._trial(kept) for kept in self._study.trials]

    @property
    def runs_per_trial(self) -> int:
        """How many runs a trial is the mean of."""
        return len(self._points)

    @property
    def best(self) -> list[tuple[float, Trial]]:
        """The values of trials that are done, the best first; of equal ones the first."""
        done = [(trial.value, trial) for trial in self.trials if trial.value is not None]
        # Sorting keeps the order of equals, reversed or not.
        return sorted(done, key=itemgetter(0), reverse=metric.direction(self.spec.metric) == "maximize")

    def runs(self, trial: Trial) -> list[Run]:
        """Those of a trial that is done."""
        return [Run.open(self._output / point.name) for point in trial.points]

    @property
    def remaining(self) -> int:
        """How many trials have not ended, nor maybe begun."""
        return max(0, self.spec.trials - sum(trial.state != "under way" for trial in self.trials))

    def check(self) -> None:
        """Raise InputError where an end of an interval, or another value, cannot be what a path is set to.

        Or where there are no validation samples: what is chosen by the test set looks better there than it is.
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
        """The runs that are missing; None where there is no more to do before another run has ended.

        Those of trials that a former start left behind come first. Each is to be told of when it has ended. Raises
        InputError for a folder in the way.
        """
        for trial in self.trials:
            if trial.state == "under way":
                self._begin(trial, device)
        while True:
            if waiting := next((begun.waiting for begun in self._begun.values() if begun.waiting), None):
                yield waiting.pop(0)
            elif len(self._study.trials) < self.spec.trials:
                self._begin(self._trial(self._study.ask()), device)
            elif self._begun:
                yield None
            else:
                return

    def tell(self, ended: Ended) -> None:
        """Take in that a run is not running any more."""
        begun = next((begun for begun in self._begun.values() if ended.name in begun.missing), None)
        if begun is None or ended.status == "interrupted":
            return  # Its trial has failed by another run; or a next start goes on with it.
        if ended.status == "failed":
            self._fail(begun.trial, ended.name, ended.problem)
            return
        begun.missing.remove(ended.name)
        if not begun.missing:
            self._measure(begun.trial)

    def _begin(self, trial: Trial, device: Literal["auto", "cpu", "cuda"]) -> None:
        found = survey(trial.points, self._output)
        waiting = []
        for point in trial.points:
            if found[point.name].state is State.DONE:
                continue
            try:
                waiting.append(Job.of(point, self._output, device))
            except InputError as error:  # Values that can be set each, but not together.
                self._fail(trial, point.name, str(error))
                return
        if waiting:
            self._begun[trial.number] = _Begun(trial, waiting, {job.name for job in waiting})
        else:  # It was killed between its last run and this.
            self._measure(trial)

    def _measure(self, trial: Trial) -> None:
        measured = []
        for point in trial.points:
            try:
                measured.append(metric.measure(self.spec.metric, Run.open(self._output / point.name)))
            except (ValueError, InputError) as error:
                self._fail(trial, point.name, str(error))
                return
        self._begun.pop(trial.number, None)
        self._study.succeed(trial.number, fmean(measured))

    def _fail(self, trial: Trial, run: str, problem: str) -> None:
        self._begun.pop(trial.number, None)
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
class _Begun:
    """A trial under way here."""

    trial: Trial
    waiting: list[Job]
    missing: set[str]
    """The runs that are not done, those that wait among them."""


_STATES: Mapping[str, Literal["under way", "failed", "done"]] = {
    "RUNNING": "under way",
    "FAIL": "failed",
    "COMPLETE": "done",
}
