"""The words of a recommendation."""

import math
from types import SimpleNamespace

import pytest

from dlion_sim.analysis.statistics import Duration, mean_of
from dlion_sim.cli.recommended import _quantity
from dlion_sim.recommend.candidates import Candidate
from dlion_sim.recommend.document import _of_seeds, _why_not, sentence
from dlion_sim.recommend.goal import Goal, compared, duration
from dlion_sim.recommend.options import Option, measured_option


def option(name, seconds, money):
    labels = {"instance": name, "count": "1", "system": "dlion"}
    candidate = Candidate(name, labels, {"cluster.clouds": [{"name": "east"}]}, 1.0)
    numbers = map(mean_of, ([seconds], [money], [0.0], [0.0], [0.9]))
    return Option(candidate, *numbers, seeds=1, missed=0, is_lower_bound=False)


def observation(seconds, gap=1.0):
    took = Duration(seconds, reached=True, gap=gap)
    return SimpleNamespace(took=took, money=1.0, wan_bytes=0.0, bytes=0.0, metric=0.9)


def sentence_of(goal, known, tied):
    race = SimpleNamespace(winners=[each.candidate for each in known], tied=[each.candidate for each in tied])
    return sentence(SimpleNamespace(goal=goal, race=race), known)


def test_it_says_what_decided_between_those_that_cannot_be_told_apart():
    known = [option("large", 120.0, 0.465), option("small", 240.0, 0.465)]
    deadline, budget = Goal(deadline=600.0), Goal(budget=1.0)
    assert sentence_of(deadline, known, known).endswith(
        "is the cheapest, and of 2 that cannot be told apart by cost the fastest: 2 min and 0.465 (deadline 10 min)"
    )
    assert "is the fastest, and of 2 that cannot be told apart by time the cheapest: " in sentence_of(
        budget, known, known
    )
    assert "is the cheapest: " in sentence_of(deadline, known, known[:1])


def test_what_evaluations_do_not_tell_apart_is_said_beside_the_difference():
    best, other = option("large", 120.0, 0.47), option("small", 240.0, 0.465)
    race = SimpleNamespace(eliminated={}, tied=[best.candidate, other.candidate])
    study = SimpleNamespace(goal=Goal(deadline=600.0), race=race)
    assert _why_not(study, best, other) == "1.1 % cheaper, which evaluations do not tell apart, 100 % slower"
    race.tied = [best.candidate]
    assert _why_not(study, best, other) == "1.1 % cheaper, 100 % slower"


@pytest.mark.parametrize(
    ("value", "words"), [(1.2, "20 % dearer"), (0.965, "3.5 % cheaper"), (1.0004, "as dear"), (3.5, "250 % dearer")]
)
def test_a_difference_is_told_as_a_part(value, words):
    assert compared(value, 1.0, "dearer", "cheaper") == words


def test_what_is_for_nothing_is_compared_without_parts():
    assert compared(1.0, 0.0, "dearer", "cheaper") == "dearer"
    assert compared(0.0, 0.0, "dearer", "cheaper") == "as dear"


def test_one_seed_tells_nothing_of_others():
    assert _of_seeds(3, 2, last=2, wins=1) == "it gets there with 2 of 3 seeds, and is the best of the last 2 with 1"
    assert _of_seeds(3, 3, last=1, wins=3) == "it gets there with 3 of 3 seeds"
    assert "only one seed was tried" in _of_seeds(1, 1, last=2, wins=1)


def test_an_interval_is_of_several_seeds_that_reached_the_target_and_the_others_are_counted():
    candidate = option("small", 1.0, 1.0).candidate
    reached = [observation(10.0), observation(12.0)]
    several = measured_option(candidate, reached, missed=1).as_json()
    assert (several["seeds"], several["missed"]) == (2, 1)
    assert several["seconds"]["low"] < 10.0 < 12.0 < several["seconds"]["high"]
    one = measured_option(candidate, reached[:1]).as_json()
    assert one["seconds"]["mean"] == 10.0
    assert math.isnan(one["seconds"]["low"])


def test_what_a_first_evaluation_has_is_a_bound():
    """Nobody knows how long before it the target was reached."""
    took = measured_option(option("small", 1.0, 1.0).candidate, [observation(10.0, gap=10.0), observation(12.0)])
    assert took.takes == "<= 11 s and <= 1"
    content = took.as_json()
    assert [content[each]["bound"] for each in ("seconds", "money", "wan_bytes", "bytes", "metric")] == ["<="] * 4 + [
        ""
    ]
    assert _quantity(content, "seconds", duration) == "<= 11 s"
