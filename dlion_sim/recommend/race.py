"""The race of the candidates: who goes on, who is left behind and why, and who is in at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from dlion_sim.recommend.candidates import Candidate
from dlion_sim.recommend.eliminations import Elimination, behind, out, unseen
from dlion_sim.recommend.goal import Goal, Resources, alike, best_first
from dlion_sim.recommend.observed import Estimate, Observed, estimate, leader

FINALISTS = 3
"""Who is left for the end, with several seeds."""
GROWTH = 2.0
"""By which factor what each may spend grows from rung to rung, and by which fewer go on."""
_FIRST_EVALUATIONS = 2
"""That the cheapest machines come to in the first rung."""
_TELLING = 0.5
"""Of the target's progress: before somebody is that far, nobody is left behind for being slower."""
_BEATEN = 1.25
"""Times what the best takes: who has spent so much is out. Less would leave it to a single seed."""
_NOTHING = Resources(shortcoming=1, spent=math.inf, bounded=math.inf, step=0.0)
"""Of whom nothing is known."""


@dataclass(frozen=True)
class Start:
    """A run that a rung needs, up to a virtual time."""

    candidate: Candidate
    seed: int
    """Which one of several, from 0."""
    until: float
    """Virtual seconds."""


@dataclass(frozen=True)
class Rung:
    """Runs that go on side by side before anything is decided."""

    title: str
    starts: Sequence[Start]


Look = Callable[[Start], Observed | str]
"""What a run that a rung needed came to, or why it failed."""


@dataclass
class Race:
    """Successive halving (Jamieson and Talwalkar, 2016): each rung gives all who are left twice as much as the last one
    did of what little is to be spent of, money or time, and the better half goes on.

    Runs pause and go on, so that nothing is computed twice. All decisions follow from what runs had come to by the end
    of a rung, whatever they have come to since.
    """

    candidates: Sequence[Candidate]
    goal: Goal
    evaluate_every: float
    """Virtual seconds."""
    seeds: int
    look: Look
    left: dict[str, Elimination] = field(default_factory=dict)
    """Why candidates are out, by name."""
    seen: dict[str, Observed] = field(default_factory=dict)
    """The latest of each candidate's run with the first seed, by name."""
    finals: dict[str, list[Observed]] = field(default_factory=dict)
    """Of who was in at the end, the runs with all seeds, by name."""
    _reserve: list[Candidate] = field(default_factory=list)
    """Who is out for being slower, and may come back."""

    def rungs(self) -> Iterator[Rung]:
        """The rungs in order; the runs of each are to be done before the next one is asked for."""
        alive, number = list(self.candidates), 0
        resource = _FIRST_EVALUATIONS * self.evaluate_every * min(map(self._rate, alive))
        while True:
            most = min(resource, _BEATEN * self._best())
            starts = [Start(each, 0, self.goal.seconds(most, each.per_hour)) for each in alive]
            due = [start for start in starts if start.until >= self._least_seconds(start.candidate)]
            number += bool(due)
            yield Rung(f"rung {number}", due)
            alive = self._judge(number, due, [start.candidate for start in starts if start not in due])
            resource *= GROWTH
            if all(map(self._is_in, alive)):
                yield Rung("other seeds", others := self._others(alive))
                self._finish(alive, others)
                if not (alive := self._back()):
                    return
                resource = GROWTH * min(self._spent_so_far(each) for each in alive)

    @property
    def winners(self) -> list[Candidate]:
        """Who reached the target within the bound with more than half of the seeds; the best first."""
        return best_first(self._successful, self._mean)

    @property
    def alike(self) -> list[Candidate]:
        """Of the winners who cannot be told apart by what little is to be spent of: the first one among them."""
        return alike(self._successful, self._mean)

    def successes(self, name: str) -> list[Observed]:
        """The runs of who was in at the end that reached the target within the bound."""
        return [seen for seen in self.finals.get(name, []) if self._succeeds(seen)]

    def takes(self, candidate: Candidate, seconds: float, money: float, shortcoming: int = 0) -> Resources:
        """What decides on a candidate that takes so much time and money."""
        step = self.goal.step(self.evaluate_every, candidate.per_hour)
        return Resources.of(self.goal, seconds, money, step=step, shortcoming=shortcoming)

    @property
    def _successful(self) -> list[Candidate]:
        return [each for each in self.candidates if 2 * len(self.successes(each.name)) > self.seeds]

    def _mean(self, candidate: Candidate) -> Resources:
        good = self.successes(candidate.name)
        seconds, money = sum(seen.seconds for seen in good) / len(good), sum(seen.money for seen in good) / len(good)
        return self.takes(candidate, seconds, money, shortcoming=-len(good))

    def _best(self) -> float:
        """The least that is spent by whom is in, with the first seed."""
        still = [each for each in self.candidates if each.name not in self.left and self._is_in(each)]
        return min((self._spent(self.seen[each.name]) for each in still), default=math.inf)

    def _spent(self, seen: Observed) -> float:
        return self.goal.spent(seen.seconds, seen.money)

    def _succeeds(self, seen: Observed) -> bool:
        return seen.reached is not None and self.goal.allows(seen.reached, seen.money)

    def _is_in(self, candidate: Candidate) -> bool:
        """Whether it has come to the target within the bound, with the first seed."""
        return candidate.name in self.seen and self._succeeds(self.seen[candidate.name])

    def _rate(self, candidate: Candidate) -> float:
        """What a second of it takes of what little is to be spent of."""
        return self.goal.spent(1.0, candidate.per_hour / 3600) or 1e-9

    def _judge(self, number: int, due: Sequence[Start], waiting: Sequence[Candidate]) -> list[Candidate]:
        """Who goes on after a rung; those that wait had not enough to show anything."""
        running = [start.candidate for start in due if self._goes_on(number, start)]
        best = self._best()
        waiting = [each for each in waiting if not self._is_too_dear(number, each, best)]
        if not running:
            return waiting
        ahead = leader(self.seen.values())
        told = {name: estimate(seen, ahead) for name, seen in self.seen.items()}
        takes = partial(self._estimated, told)
        ranked = best_first(running, takes)
        if ahead.curve.last < _TELLING:
            return [*ranked, *waiting]
        until = {start.candidate.name: start.until for start in due}
        beaten = [each for each in ranked if not self._is_in(each) and until[each.name] >= self._most(each, best)]
        ranked = [each for each in ranked if each not in beaten]
        is_over = all(map(self._is_in, ranked))
        kept = ranked[: FINALISTS if is_over else max(FINALISTS, math.ceil(len(ranked) / GROWTH))]
        others = [*ranked[len(kept) :], *beaten]
        left = {*self.left, *(each.name for each in others)}
        first, *_ = best_first([each for each in self.candidates if each.name in {*told} - left], takes)
        for each in others:
            of_first = first.name, told[first.name]
            self._leave(each, behind(number, self.seen[each.name], told[each.name], self.goal, *of_first))
        return [*kept, *waiting]

    def _goes_on(self, number: int, start: Start) -> bool:
        """Whether a candidate may still be the answer, by its run alone."""
        looked = self.look(start)
        if isinstance(looked, str):
            self.left[start.candidate.name] = Elimination(number, f"fails: {looked}")
            return False
        self.seen[start.candidate.name] = looked
        reason = out(number, looked, self.goal, self.goal.most_seconds(start.candidate.per_hour))
        if reason:
            self.left[start.candidate.name] = reason
        return reason is None

    def _is_too_dear(self, number: int, candidate: Candidate, best: float) -> bool:
        """Whether it takes more than the best until it has shown anything."""
        least = self._least_seconds(candidate)
        if least < self._most(candidate, best):
            return False
        spent = self.goal.spent(least, least * candidate.per_hour / 3600)
        self._leave(candidate, unseen(number, spent, self.goal, best))
        return True

    def _least_seconds(self, candidate: Candidate) -> float:
        """Until a run shows anything: up to its first evaluation, if it comes to that."""
        return min(self.evaluate_every, self.goal.most_seconds(candidate.per_hour))

    def _most(self, candidate: Candidate, best: float) -> float:
        """For how long (s) a candidate may run where the best takes so much."""
        return math.inf if math.isinf(best) else self.goal.seconds(_BEATEN * best, candidate.per_hour)

    def _estimated(self, told: Mapping[str, Estimate], candidate: Candidate) -> Resources:
        if candidate.name not in told:
            return _NOTHING
        seconds, money = told[candidate.name].seconds, told[candidate.name].money
        return self.takes(candidate, seconds, money, shortcoming=not self.goal.allows(seconds, money))

    def _leave(self, candidate: Candidate, left: Elimination) -> None:
        self.left[candidate.name] = left
        self._reserve.append(candidate)

    def _back(self) -> list[Candidate]:
        """Who comes back: those with the best prospects where nobody is left, or else those who would do better than
        the best, now that it is known how it learns up to the target. Before, they may have seemed to be too late."""
        if not self._reserve:
            return []
        winners = self.winners
        ahead = self.seen[winners[0].name] if winners else leader(self.seen.values())
        takes = partial(self._estimated, {name: estimate(seen, ahead) for name, seen in self.seen.items()})
        ranked = best_first(self._reserve, takes)
        if winners:
            best = self._spent(ahead)
            better = [each for each in ranked if not takes(each).shortcoming and takes(each).spent < best]
            ranked = [each for each in better if self.seen[each.name].until < self._most(each, best)]
        back = ranked[:FINALISTS]
        self._reserve = [each for each in self._reserve if each not in back]
        for each in back:
            del self.left[each.name]
        return back

    def _spent_so_far(self, candidate: Candidate) -> float:
        seen = self.seen.get(candidate.name)
        return self._rate(candidate) * self.evaluate_every if seen is None else self._spent(seen)

    def _others(self, finalists: Sequence[Candidate]) -> list[Start]:
        return [
            Start(each, seed, self.goal.most_seconds(each.per_hour))
            for each in finalists
            for seed in range(1, self.seeds)
        ]

    def _finish(self, finalists: Sequence[Candidate], others: Sequence[Start]) -> None:
        for each in finalists:
            looked = [self.look(start) for start in others if start.candidate is each]
            self.finals[each.name] = [self.seen[each.name], *(seen for seen in looked if not isinstance(seen, str))]
            if 2 * len(self.successes(each.name)) <= self.seeds:
                reason = f"with {len(self.successes(each.name))} of {self.seeds} seeds only, {self.goal.bound}"
                self.left[each.name] = Elimination(None, reason)
