"""The study of a recommendation: its runs in a folder, done or to do."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from dlion_sim.analysis.curves import mean_metric
from dlion_sim.errors import InputError
from dlion_sim.metric import ACCURACY
from dlion_sim.recommend.candidates import VALIDATION, Candidate, Choices, Refused, candidates
from dlion_sim.recommend.effort import Effort, fitted, read_effort, write_effort
from dlion_sim.recommend.goal import Goal, own_goal
from dlion_sim.recommend.observed import Observed
from dlion_sim.recommend.options import options
from dlion_sim.recommend.pilot import NEEDED, Pilots, proposed, reached
from dlion_sim.recommend.race import FINALISTS, Race, Start
from dlion_sim.recommend.sensitivity import Counterfactual, counterfactuals
from dlion_sim.results import FolderLock, Run
from dlion_sim.results.numbers import duration, of_metric
from dlion_sim.results.run_folder import holds_run, remove_checkpoint
from dlion_sim.scenario import DURATION, Scenario, from_data
from dlion_sim.scenario.overrides import overridden
from dlion_sim.sweep import Base, Estimate, Found, Job, Point, State, check, estimate, survey

Execute = Callable[[str, Sequence[Job]], bool]
"""Does the jobs of a rung with that title; returns whether it was not interrupted."""
_FREE = "costs nothing, so no budget ends it"
_BEYOND = 4.0
"""Maximum run time as a multiple of the bound, if no candidate is within it."""
Device = Literal["auto", "cpu", "cuda"]


def scenario_of(base: Base, *, own: bool = False) -> Scenario:
    """The scenario of a base. Unless its `own` machines are used, they need no prices.

    Raises InputError, which does not name the file.
    """
    if own:
        return from_data(base.data, folder=base.file.parent)
    data = copy.deepcopy(base.data)
    with suppress(AttributeError, KeyError, TypeError):  # `from_data` reports what is wrong
        for group in (group for cloud in data["cluster"]["clouds"] for group in cloud["workers"]):
            if "instance" not in group:
                group.setdefault("price", 0)
    return from_data(data, folder=base.file.parent)


class Study:
    """A goal, its candidates, and the folder of their runs."""

    def __init__(
        self, base: Base, choices: Choices, goal: Goal | None, seeds: int, output: Path, *, of_all: bool = False
    ) -> None:
        """For the scenario in `base`, with a number of `seeds` for finalists.

        Without a goal, that on the scenario's own machines is the fastest within its duration. Without a target there,
        `run` proposes what the scenario's own system reaches by then, or the best `of_all` candidates.

        Raises InputError if the scenario is invalid, machines are rented without a target, or there is no candidate.
        """
        self.base = base
        self.is_own = choices.catalog is None
        self.scenario = scenario = scenario_of(base, own=self.is_own)
        self.goal = goal = own_goal(scenario, goal) if self.is_own or goal is None else goal
        self.seeds = seeds
        self.output = output
        target = scenario.target if scenario.target_accuracy is None else scenario.target_accuracy
        if target is None and not self.is_own:
            raise InputError("there is no target", path="target_accuracy", allowed=NEEDED)
        self.target = math.nan if target is None else target
        """NaN until it is proposed."""
        self.proposal: str | None = None
        """Where the target is from, if it was proposed."""
        found, self.refused = candidates(base, scenario, choices)
        free = [each for each in found if goal.budget is not None and not each.per_hour]
        self.refused += [Refused(each.name, _FREE) for each in free]
        self.candidates = found = [each for each in found if each not in free]
        if not found:
            raise InputError(f"{free[0].name} {_FREE}", file=base.file, allowed="a deadline, or prices")
        self.race = Race(found, goal, scenario.workload.evaluate_every, seeds, self.observe)
        self.effort: Effort | None = None
        """What was left out to fit into a wall time."""
        self.counterfactuals: list[Counterfactual] = []
        """Of the winner, once known."""
        self._of_all = of_all
        self._pilots: Pilots | None = None

    @property
    def held_out_share(self) -> float | None:
        """The share of training samples held out for the study, if the scenario has no validation samples."""
        return None if self.scenario.workload.validation else VALIDATION

    def check(self) -> None:
        """Remove candidates with invalid scenarios. Raises InputError if none is left."""
        faults = [(each, self._fault(each)) for each in self.candidates]
        self.refused += [Refused(each.name, fault.problem) for each, fault in faults if fault]
        self.candidates = self.race.candidates = [each for each, fault in faults if not fault]
        if not self.candidates:
            raise next(fault for _, fault in faults if fault)

    def _fault(self, candidate: Candidate) -> InputError | None:
        """What is wrong with its scenario."""
        try:
            check([self._run_of(candidate, self.scenario.seed)])
        except InputError as error:
            return error
        return None

    def limit(self, seconds: float, jobs: int, device: Device) -> Effort:
        """Leave out candidates and seeds so that it fits into a wall time, as chosen when the study began.

        Raises InputError if no run can be started.
        """
        chosen = read_effort(self.output, self.candidates, self.seeds, seconds)
        if chosen is None:
            per_run = self.takes(jobs, device, most=3, watch=1.0).high / len(self.candidates)
            others = len(counterfactuals(self.scenario, self.candidates[0], 0.0))
            if math.isnan(self.target):
                others += 1 + self._of_all * len(self.candidates) // 4
            chosen = fitted(self.candidates, self.seeds, others, max(per_run, 1e-6), seconds)
        self.effort = chosen
        self.seeds = self.race.seeds = chosen.seeds
        self.candidates = self.race.candidates = [each for each in self.candidates if each.name in chosen.candidates]
        return chosen

    def run(self, execute: Execute, device: Device) -> bool:
        """Do all missing simulations of the study; returns whether it was not interrupted.

        Once there is a winner, checkpoints, which take most of the space, are removed. Raises InputError for runs of
        another scenario in the folder, and if all candidates fail.
        """
        if self.effort:
            self.output.mkdir(parents=True, exist_ok=True)
            write_effort(self.output, self.effort)
        if math.isnan(self.target) and not self._propose(execute, device):
            return False
        for rung in self.race.rungs():
            if not self._execute(execute, rung.title, rung.starts, device):
                return False
        self._check_failures()
        if not self.race.winners:
            return self._run_beyond_bound(execute, device)
        is_done = self._what_if(execute, device)
        if is_done:
            self._remove_checkpoints()
        return is_done

    def _propose(self, execute: Execute, device: Device) -> bool:
        """Run pilots up to the bound, and let what the best of them reaches be the target."""
        bound = self.goal.max_seconds(self.candidates[0].per_hour)
        pilots = (
            Pilots.of_all(self.base, self.candidates, bound)
            if self._of_all
            else Pilots.of_own_system(self.base, self.scenario, bound)
        )
        self._pilots, points, runs = pilots, list(pilots.points), dict[str, Run]()
        for until in pilots.times:
            found = survey(points, self.output)
            jobs = [
                Job.of(each, self.output, device, until) for each in points if not _is_done(found[each.name], until)
            ]
            if jobs and not execute("pilots", jobs):
                return False
            found = survey(points, self.output)
            runs = {name: each.run for name, each in found.items() if each.run and each.state is not State.FAILED}
            points = pilots.better(points, runs, until)
        if not points:
            raise InputError("there is no target, and what is to tell it fails or diverges", allowed=NEEDED)
        best, bound_text = runs[points[0].name], duration(bound)
        self.target = target = proposed(best.metric, float(mean_metric(best).iloc[0]), reached(best, bound))
        path = "target_accuracy" if best.metric == ACCURACY else "target"
        self.base = Base(self.base.file, overridden(self.base.data, [f"{path}={target}"]))
        self.scenario = scenario_of(self.base, own=True)
        words = pilots.words[points[0].name]
        self.proposal = f"the target is {of_metric(target, best.metric)}, which {words} reaches in {bound_text}"
        return True

    def _what_if(self, execute: Execute, device: Device) -> bool:
        """Simulate the counterfactuals of the winner."""
        winner = self.race.winners[0]
        long_enough = max(self.goal.max_seconds(winner.per_hour), self.race.observed[winner.name].seconds)
        changes = counterfactuals(self.scenario, winner, long_enough)
        self.counterfactuals = [
            replace(each, problem=fault.problem if (fault := self._fault(each.start.candidate)) else "")
            for each in changes
        ]
        valid = [each.start for each in self.counterfactuals if not each.problem]
        return self._execute(execute, "what if", valid, device)

    def _run_beyond_bound(self, execute: Execute, device: Device) -> bool:
        """Continue the most promising candidates beyond the bound, to measure what they need."""
        for _ in range(FINALISTS):
            known = options(self.race)
            nearest = min(known, key=lambda each: self.goal.constrained(*each.means), default=None)
            if nearest is None or nearest.seeds:
                return True
            candidate = nearest.candidate
            start = Start(candidate, 0, _BEYOND * self.goal.max_seconds(candidate.per_hour))
            if not self._execute(execute, "beyond the bound", [start], device):
                return False
            observation = self.observe(start)
            if isinstance(observation, str):
                return True
            self.race.observed[candidate.name] = observation
            if observation.reached is None:
                return True
        return True

    def _remove_checkpoints(self) -> None:
        starts = [Start(each, seed, 0.0) for each in self.candidates for seed in range(self.seeds)]
        starts += [each.start for each in self.counterfactuals]
        pilots = self._pilots.points if self._pilots else ()
        for point in (*map(self._point, starts), *pilots):
            folder = self.output / point.name
            if holds_run(folder):
                with suppress(InputError), closing(FolderLock(folder)):  # A user may be running it.
                    remove_checkpoint(folder)

    @property
    def is_begun(self) -> bool:
        """Whether the folder has a candidate's run."""
        return any(self._found(Start(each, 0, 0.0)).run for each in self.candidates)

    def takes(self, jobs: int, device: Device, *, most: int, watch: float) -> Estimate:
        """Wall time of all candidates up to the bound with the first seed: an upper bound, as many are eliminated.

        The arguments are those of `sweep.estimate`. Raises InputError if a run cannot be started.
        """
        points = [self._run_of(each, self.scenario.seed) for each in self.candidates]
        longest = [DURATION.format(self.goal.max_seconds(each.per_hour)) for each in self.candidates]
        constrained = [
            replace(point, values={**point.values, "duration": seconds})
            for point, seconds in zip(points, longest, strict=True)
        ]
        return estimate(constrained, survey(points, self.output), jobs=jobs, device=device, most=most, watch=watch)

    def observe(self, start: Start) -> Observed | str:
        """The observation of a run, or why it failed. Raises InputError if it cannot be read."""
        found = self._found(start)
        if found.run is None or found.state is State.FAILED:
            if found.run is None:
                return "there is no run"
            return str(found.run.manifest.get("problem") or found.run.outcome["stopped_by"])
        return Observed.of(found.run, self.target, start.until)

    @property
    def samples(self) -> int:
        """Number of samples simulated, without those of the sensitivity."""
        others = [observation for finals in self.race.finals.values() for observation in finals[1:]]
        return sum(observation.samples for observation in (*self.race.observed.values(), *others))

    def _execute(self, execute: Execute, title: str, starts: Sequence[Start], device: Device) -> bool:
        jobs = [self._job(start, device) for start in starts if not _is_done(self._found(start), start.until)]
        return not jobs or execute(title, jobs)

    def _job(self, start: Start, device: Device) -> Job:
        return Job.of(self._point(start), self.output, device, start.until)

    def _found(self, start: Start) -> Found:
        point = self._point(start)
        return survey([point], self.output)[point.name]

    def _point(self, start: Start) -> Point:
        return self._run_of(start.candidate, self.scenario.seed + start.seed)

    def _run_of(self, candidate: Candidate, seed: int) -> Point:
        availability = self.scenario.availability
        if availability is None or not availability.links:
            return candidate.point(self.base, seed)
        # Outages of links are listed up to the duration.
        longest = _BEYOND * self.goal.max_seconds(candidate.per_hour)
        return candidate.point(self.base, seed, min(DURATION.most, longest))

    def _check_failures(self) -> None:
        if not self.race.observed:
            first = next(iter(self.race.eliminated.values()))
            raise InputError(f"no candidate can be run; the first {first.reason}", file=self.base.file)


def _is_done(found: Found, until: float) -> bool:
    """Whether a run has reached that time (s), or has ended."""
    if found.state is State.INTERRUPTED and found.run is not None and found.run.summary is not None:
        return bool(found.run.summary["virtual_seconds"] >= until * (1 - 1e-9))
    return found.state is State.DONE
