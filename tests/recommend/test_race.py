"""The race of candidates, by made-up learning curves."""

import math
import random
from dataclasses import dataclass

import numpy as np
import pytest

from dlion_sim.recommend.candidates import Candidate
from dlion_sim.recommend.goal import Goal
from dlion_sim.recommend.observed import Curve, estimate, leader
from dlion_sim.recommend.race import FINALISTS, Race

EVERY = 1.0
HOUR = 3600.0


@dataclass(frozen=True)
class Learner:
    """Approaches its maximum progress exponentially, with a time constant (s)."""

    constant: float
    per_hour: float
    most: float = 1.25
    """The final progress."""

    def observed(self, until):
        times = np.arange(0.0, until + 1e-9, EVERY)
        progress = self.most * (1 - np.exp(-times / self.constant))
        reached = times[progress >= 1][0] if (progress >= 1).any() else None
        kept = times <= (until if reached is None else reached)
        return Glimpse(Curve(times[kept], progress[kept]), until, reached, self.per_hour)

    @property
    def seconds(self):
        return self.observed(30 * self.constant).reached or math.inf


@dataclass(frozen=True)
class Glimpse:
    """An observation of a learner, like one of a run."""

    curve: Curve
    until: float
    reached: float | None
    per_hour: float
    problem: str = ""
    reaches_alone: bool = False

    @property
    def seconds(self):
        return float(self.curve.times[-1]) if self.reached is None else self.reached

    @property
    def money(self):
        return self.money_by(self.seconds)

    def money_by(self, seconds):
        return seconds * self.per_hour / HOUR


def raced(learners, goal, *, seeds=2, observe=None):
    """The race of learners, and the seconds that all of them ran."""
    candidates = [Candidate(str(number), {}, {}, each.per_hour) for number, each in enumerate(learners)]
    ran = {}

    def see(start):
        key = start.candidate.name, start.seed
        observation = (observe or (lambda start: learners[int(start.candidate.name)].observed(start.until)))(start)
        ran[key] = max(ran.get(key, 0.0), 0.0 if isinstance(observation, str) else observation.seconds)
        return observation

    race = Race(candidates, goal, EVERY, seeds, see)
    rungs = [*race.rungs()]
    assert len(rungs) < 60
    return race, sum(ran.values())


def objective(learner, goal):
    """The objective of a learner; infinite beyond the bound."""
    seconds, money = learner.seconds, learner.seconds * learner.per_hour / HOUR
    return goal.objective(seconds, money) if goal.allows(seconds, money) else math.inf


def steady(learners):
    """Observations of learners with linear curves: seconds to the target, and price per hour."""

    def observe(start):
        seconds, per_hour = learners[int(start.candidate.name)]
        times = np.arange(0.0, min(start.until, seconds) + 1e-9, EVERY)
        reached = seconds if start.until >= seconds else None
        return Glimpse(Curve(times, times / seconds), start.until, reached, per_hour)

    return observe


def winner_of(learners, goal):
    """The number of the winner, and of the tied candidates."""
    race, _ = raced([Learner(1.0, per_hour) for _, per_hour in learners], goal, observe=steady(learners))
    return int(race.winners[0].name), {int(each.name) for each in race.tied}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("learners", "goal"),
    [
        ([(274.0, 6.12), (137.0, 12.24)], Goal(deadline=400.0)),  # both cost as much,
        ([(272.0, 6.12), (137.0, 12.2)], Goal(deadline=400.0)),  # or one less, but by less than an evaluation's time
        ([(100.0, 9.0), (100.0, 4.0)], Goal(budget=1.0)),
    ],
)
def test_tied_candidates_are_ranked_by_the_bounded_quantity(learners, goal, order):
    assert winner_of(learners[::order], goal) == ([1, 0][::order][0], {0, 1})


def test_a_difference_of_one_evaluation_is_significant():
    assert winner_of([(272.0, 6.12), (137.0, 12.24)], Goal(deadline=400.0)) == (0, {0})
    assert winner_of([(100.0, 9.0), (101.0, 4.0)], Goal(budget=1.0)) == (0, {0})
    few = [(6.0, 2.0), (3.0, 4.5)]  # an evaluation takes a third of all, which hides no eighth
    assert winner_of(few, Goal(deadline=400.0)) == (0, {0})


def test_the_fastest_of_many_tied_candidates_wins():
    learners = [*[(200.0 + number, 2.0) for number in range(6)], (102.0, 3.93)]
    assert winner_of(learners, Goal(deadline=400.0)) == (6, {0, 6})


@pytest.mark.parametrize("number", range(20))
def test_with_one_learning_curve_the_best_wins(number):
    draw = random.Random(number)
    learners = [
        Learner(10 ** draw.uniform(1, 3), 10 ** draw.uniform(0, 2), draw.choice([1.25, 1.25, 0.9]))
        for _ in range(draw.randrange(1, 40))
    ]
    goal = Goal(deadline=10 ** draw.uniform(1, 4)) if number % 2 else Goal(budget=10 ** draw.uniform(-2, 1))
    race, ran = raced(learners, goal)
    best = min(objective(each, goal) for each in learners)
    if math.isinf(best):
        assert not race.winners
    else:
        # Those that are as good but for a few evaluations may be taken for better.
        assert objective(learners[int(race.winners[0].name)], goal) <= 1.1 * best
        assert race.winners[0].name not in race.eliminated
    named = {*race.eliminated, *race.finals}
    assert named == {each.name for each in race.candidates}
    exhaustive = 2 * sum(min(each.seconds, goal.max_seconds(each.per_hour)) for each in learners)
    assert ran <= exhaustive


def test_a_race_of_many_takes_a_fraction_of_an_exhaustive_search():
    draw = random.Random(1)
    learners = [Learner(draw.uniform(20, 400), draw.uniform(1, 10)) for _ in range(60)]
    goal = Goal(deadline=1000.0)
    _, ran = raced(learners, goal, seeds=3)
    assert ran < 0.2 * 3 * sum(min(each.seconds, 1000.0) for each in learners)


def test_no_candidate_is_eliminated_before_the_leader_is_halfway():
    learners = [Learner(100.0 + number, 1.0) for number in range(20)]
    race, _ = raced(learners, Goal(budget=1.0))
    assert min(elimination.rung for elimination in race.eliminated.values()) >= math.log2(
        math.log(1 / (1 - 0.5 / 1.25)) * 100 / 2
    )


def test_reasons_state_progress_and_needs():
    race, _ = raced([Learner(50.0, 1.0), *[Learner(100.0 * n, 1.0) for n in range(2, 9)]], Goal(deadline=400.0))
    slow = race.eliminated["7"]
    assert "% of the target's progress at" in slow.reason
    assert "deadline 6.67 min" in slow.reason
    assert all("needs" in elimination.reason for elimination in race.eliminated.values())


def test_failed_diverged_and_isolated_candidates_are_eliminated():
    learners = [Learner(50.0, 1.0) for _ in range(4)]

    def observe(start):
        observation = learners[0].observed(start.until)
        match start.candidate.name:
            case "0":
                return "no memory"
            case "1":
                return Glimpse(observation.curve, observation.until, None, 1.0, problem="its training diverges")
            case "2":
                return Glimpse(observation.curve, observation.until, observation.reached, 1.0, reaches_alone=True)
        return observation

    race, _ = raced(learners, Goal(deadline=400.0), observe=observe)
    assert [each.name for each in race.winners] == ["3"]
    assert race.eliminated["0"].reason == "fails: no memory"
    assert race.eliminated["1"].reason == "its training diverges"
    assert "before they exchange anything" in race.eliminated["2"].reason


def test_slower_candidates_are_reinstated_if_no_finalist_succeeds():
    """The cheapest seem best, but miss the deadline with other seeds."""
    learners = [*[Learner(200.0, 1.0)] * 8, Learner(100.0, 8.0)]

    def observe(start):
        slow = start.candidate.name != "8" and start.seed
        return learners[int(start.candidate.name)].observed(min(start.until, 100.0) if slow else start.until)

    race, _ = raced(learners, Goal(deadline=400.0), seeds=3, observe=observe)
    assert [each.name for each in race.winners] == ["8"]
    assert "with 1 of 3 seeds only" in race.eliminated["0"].reason


def test_candidates_are_reinstated_with_the_winners_full_curve():
    """Compared with a candidate that is fast at first and then stops, steady ones seem too slow."""
    steady, dear = np.arange(0.0, 91.0) / 90, np.arange(0.0, 21.0) / 20
    quick = np.array([0.0, 0.55, *[0.6] * 300])
    learners = [(quick, 1.0), *[(steady, 1.0)] * 2, *[(dear, 6.0)] * 6]

    def observe(start):
        progress, per_hour = learners[int(start.candidate.name)]
        times = np.arange(0.0, min(start.until, len(progress) - 1) + 1e-9, EVERY)
        reached = float(times[-1]) if progress[len(times) - 1] >= 1 else None
        return Glimpse(Curve(times, progress[: len(times)]), start.until, reached, per_hour)

    race, _ = raced([Learner(1.0, per_hour) for _, per_hour in learners], Goal(deadline=200.0), observe=observe)
    assert {each.name for each in race.winners[:2]} == {"1", "2"}
    assert not {"1", "2"} & {*race.eliminated}


def test_estimates_scale_the_leaders_curve():
    ahead, behind = Learner(10.0, 1.0).observed(100.0), Learner(90.0, 2.0).observed(40.0)
    assert leader([behind, ahead]) is ahead
    assert leader([Learner(5.0, 1.0).observed(100.0), ahead]) is ahead
    content = estimate(behind, ahead)
    assert content.seconds == pytest.approx(Learner(90.0, 2.0).seconds, rel=0.1)
    assert content.money == pytest.approx(2 * content.seconds / HOUR)
    assert (content.is_measured, content.is_lower_bound) == (False, False)
    assert estimate(ahead, ahead).is_measured


def test_estimates_beyond_the_leader_are_lower_bounds():
    observation = Learner(90.0, 2.0).observed(40.0)
    content = estimate(observation, observation)
    assert content.is_lower_bound
    assert 40.0 < content.seconds < Learner(90.0, 2.0).seconds
    assert math.isinf(estimate(Learner(90.0, 2.0).observed(0.5), observation).seconds)


def test_few_candidates_are_all_finalists():
    race, _ = raced([Learner(20.0, 1.0)] * FINALISTS, Goal(deadline=400.0))
    assert len(race.finals) == FINALISTS
    assert not race.eliminated
