"""The race of candidates by successive halving: rungs, eliminations, finalists."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from dlion_sim.recommend.candidates import Candidate
from dlion_sim.recommend.eliminations import Elimination, not_evaluated, own_elimination, slower
from dlion_sim.recommend.goal import Goal, Resources, best_first, tied
from dlion_sim.recommend.observed import Estimate, Observed, estimate, leader

FINALISTS = 3
"""Number of finalists, which run with several seeds."""
GROWTH = 2.0
"""Growth of the resource per rung, and the factor by which candidates are reduced."""
_FIRST_EVALUATIONS = 2
"""Evaluations of the cheapest machines in the first rung."""
_RANKING_PROGRESS = 0.5
"""Progress of the leader before which no candidate is eliminated for being slower."""
_BEATEN_FACTOR = 1.25
"""Ratio to the best objective beyond which candidates are out. A smaller one would rely on a single seed."""
_UNKNOWN = Resources(shortcoming=1, objective=math.inf, other=math.inf, step=0.0)
"""Of candidates without observation."""


@dataclass(frozen=True)
class Start:
    """A run that a rung needs, up to a virtual time."""

    candidate: Candidate
    seed: int
    """Number of the seed, from 0."""
    until: float
    """Virtual seconds."""


@dataclass(frozen=True)
class Rung:
    """Runs to do in parallel before the next decision."""

    title: str
    starts: Sequence[Start]


Observe = Callable[[Start], Observed | str]
"""Returns the observation of a rung's run, or why it failed."""


@dataclass
class Race:
    """Successive halving (Jamieson and Talwalkar, 2016): each rung doubles the resource, money or time, of the
    remaining candidates, and the better half continues.

    Runs are paused and resumed, so nothing is computed twice. Decisions depend only on a run's state at the end of a
    rung, even if it has continued since.
    """

    candidates: Sequence[Candidate]
    goal: Goal
    evaluate_every: float
    """Virtual seconds."""
    seeds: int
    observe: Observe
    eliminated: dict[str, Elimination] = field(default_factory=dict)
    """Eliminations by candidate name."""
    observed: dict[str, Observed] = field(default_factory=dict)
    """Latest observation of the run with the first seed, by candidate name."""
    finals: dict[str, list[Observed]] = field(default_factory=dict)
    """Observations with all seeds of finalists, by name."""
    _reserve: list[Candidate] = field(default_factory=list)
    """Candidates eliminated as slower, which may be reinstated."""

    def rungs(self) -> Iterator[Rung]:
        """The rungs in order; the caller does the runs of each before it requests the next one."""
        active, number = list(self.candidates), 0
        resource = _FIRST_EVALUATIONS * self.evaluate_every * min(map(self._rate, active))
        while True:
            most = min(resource, _BEATEN_FACTOR * self._best_objective())
            starts = [Start(each, 0, self.goal.seconds(most, each.per_hour)) for each in active]
            due = [start for start in starts if start.until >= self._least_seconds(start.candidate)]
            number += bool(due)
            yield Rung(f"rung {number}", due)
            active = self._judge(number, due, [start.candidate for start in starts if start not in due])
            resource *= GROWTH
            if all(map(self._is_finished, active)):
                yield Rung("other seeds", others := self._other_seeds(active))
                self._finish(active, others)
                if not (active := self._reinstated()):
                    return
                resource = GROWTH * min(self._objective_so_far(each) for each in active)

    @property
    def winners(self) -> list[Candidate]:
        """Finalists that reached the target within the bound with more than half of the seeds, the best first."""
        return best_first(self._successful, self._mean)

    @property
    def tied(self) -> list[Candidate]:
        """The winners without a significant difference in the objective to the best, including it."""
        return tied(self._successful, self._mean)

    def resolves(self, seconds: float, others: float) -> bool:
        """Whether two times to the target differ by more than an evaluation interval."""
        return abs(seconds - others) > self.evaluate_every * (1 + 1e-9)

    def successes(self, name: str) -> list[Observed]:
        """A finalist's runs that reached the target within the bound."""
        return [observation for observation in self.finals.get(name, []) if self._succeeds(observation)]

    def resources(self, candidate: Candidate, seconds: float, money: float, shortcoming: int = 0) -> Resources:
        """The sort key of a candidate with this time and money."""
        step = self.goal.step(self.evaluate_every, candidate.per_hour)
        return Resources.of(self.goal, seconds, money, step=step, shortcoming=shortcoming)

    @property
    def _successful(self) -> list[Candidate]:
        return [each for each in self.candidates if 2 * len(self.successes(each.name)) > self.seeds]

    def _mean(self, candidate: Candidate) -> Resources:
        good = self.successes(candidate.name)
        seconds, money = (sum(getattr(each, key) for each in good) / len(good) for key in ("seconds", "money"))
        return self.resources(candidate, seconds, money, shortcoming=-len(good))

    def _best_objective(self) -> float:
        """The best objective of finished candidates, with the first seed."""
        still = [each for each in self.candidates if each.name not in self.eliminated and self._is_finished(each)]
        return min((self._objective(self.observed[each.name]) for each in still), default=math.inf)

    def _objective(self, observation: Observed) -> float:
        return self.goal.objective(observation.seconds, observation.money)

    def _succeeds(self, observation: Observed) -> bool:
        return observation.reached is not None and self.goal.allows(observation.reached, observation.money)

    def _is_finished(self, candidate: Candidate) -> bool:
        """Whether it reached the target within the bound, with the first seed."""
        return candidate.name in self.observed and self._succeeds(self.observed[candidate.name])

    def _rate(self, candidate: Candidate) -> float:
        """The objective of one second."""
        return self.goal.objective(1.0, candidate.per_hour / 3600) or 1e-9

    def _judge(self, number: int, due: Sequence[Start], waiting: Sequence[Candidate]) -> list[Candidate]:
        """The candidates of the next rung; `waiting` ones had too small a resource for an evaluation."""
        running = [start.candidate for start in due if self._continues(number, start)]
        best = self._best_objective()
        waiting = [each for each in waiting if not self._is_too_expensive(number, each, best)]
        if not running:
            return waiting
        ahead = leader(self.observed.values())
        estimates = {name: estimate(observation, ahead) for name, observation in self.observed.items()}
        resources = partial(self._estimated, estimates)
        ranked = best_first(running, resources)
        if ahead.curve.last < _RANKING_PROGRESS:
            return [*ranked, *waiting]
        until = {start.candidate.name: start.until for start in due}
        beaten = [
            each for each in ranked if not self._is_finished(each) and until[each.name] >= self._max_seconds(each, best)
        ]
        ranked = [each for each in ranked if each not in beaten]
        is_over = all(map(self._is_finished, ranked))
        kept = ranked[: FINALISTS if is_over else max(FINALISTS, math.ceil(len(ranked) / GROWTH))]
        others = [*ranked[len(kept) :], *beaten]
        elimination = {*self.eliminated, *(each.name for each in others)}
        first, *_ = best_first([each for each in self.candidates if each.name in {*estimates} - elimination], resources)
        for each in others:
            of_first = first.name, estimates[first.name]
            self._eliminate(each, slower(number, self.observed[each.name], estimates[each.name], self.goal, *of_first))
        return [*kept, *waiting]

    def _continues(self, number: int, start: Start) -> bool:
        """Whether a candidate may still win, by its own run."""
        observation = self.observe(start)
        if isinstance(observation, str):
            self.eliminated[start.candidate.name] = Elimination(number, f"fails: {observation}")
            return False
        self.observed[start.candidate.name] = observation
        reason = own_elimination(number, observation, self.goal, self.goal.max_seconds(start.candidate.per_hour))
        if reason:
            self.eliminated[start.candidate.name] = reason
        return reason is None

    def _is_too_expensive(self, number: int, candidate: Candidate, best: float) -> bool:
        """Whether its first evaluation costs more than the best candidate."""
        seconds = self._least_seconds(candidate)
        if seconds < self._max_seconds(candidate, best):
            return False
        objective = self.goal.objective(seconds, seconds * candidate.per_hour / 3600)
        self._eliminate(candidate, not_evaluated(number, objective, self.goal, best))
        return True

    def _least_seconds(self, candidate: Candidate) -> float:
        """Time of a run's first evaluation, or its maximum time."""
        return min(self.evaluate_every, self.goal.max_seconds(candidate.per_hour))

    def _max_seconds(self, candidate: Candidate, best: float) -> float:
        """Maximum time (s) of a candidate, given the best objective."""
        return math.inf if math.isinf(best) else self.goal.seconds(_BEATEN_FACTOR * best, candidate.per_hour)

    def _estimated(self, estimates: Mapping[str, Estimate], candidate: Candidate) -> Resources:
        if candidate.name not in estimates:
            return _UNKNOWN
        seconds, money = estimates[candidate.name].seconds, estimates[candidate.name].money
        return self.resources(candidate, seconds, money, shortcoming=not self.goal.allows(seconds, money))

    def _eliminate(self, candidate: Candidate, elimination: Elimination) -> None:
        self.eliminated[candidate.name] = elimination
        self._reserve.append(candidate)

    def _reinstated(self) -> list[Candidate]:
        """Reinstated candidates: those with the best estimates if no finalist succeeded, else those that now, with the
        winner's full learning curve, are estimated to be better than it."""
        if not self._reserve:
            return []
        winners = self.winners
        ahead = self.observed[winners[0].name] if winners else leader(self.observed.values())
        resources = partial(
            self._estimated, {name: estimate(observation, ahead) for name, observation in self.observed.items()}
        )
        ranked = best_first(self._reserve, resources)
        if winners:
            best = self._objective(ahead)
            better = [each for each in ranked if not resources(each).shortcoming and resources(each).objective < best]
            ranked = [each for each in better if self.observed[each.name].until < self._max_seconds(each, best)]
        back = ranked[:FINALISTS]
        self._reserve = [each for each in self._reserve if each not in back]
        for each in back:
            del self.eliminated[each.name]
        return back

    def _objective_so_far(self, candidate: Candidate) -> float:
        observation = self.observed.get(candidate.name)
        return self._rate(candidate) * self.evaluate_every if observation is None else self._objective(observation)

    def _other_seeds(self, finalists: Sequence[Candidate]) -> list[Start]:
        return [
            Start(each, seed, self.goal.max_seconds(each.per_hour))
            for each in finalists
            for seed in range(1, self.seeds)
        ]

    def _finish(self, finalists: Sequence[Candidate], others: Sequence[Start]) -> None:
        for each in finalists:
            observation = [self.observe(start) for start in others if start.candidate is each]
            self.finals[each.name] = [
                self.observed[each.name],
                *(observation for observation in observation if not isinstance(observation, str)),
            ]
            if 2 * len(self.successes(each.name)) <= self.seeds:
                reason = f"with {len(self.successes(each.name))} of {self.seeds} seeds only, {self.goal.bound}"
                self.eliminated[each.name] = Elimination(None, reason)
