"""Texts of a recommendation."""

import math
from types import SimpleNamespace

import pytest

from dlion_sim.analysis.statistics import Duration, mean_of
from dlion_sim.recommend.candidates import Candidate
from dlion_sim.recommend.document import sentence
from dlion_sim.recommend.goal import Goal, compared
from dlion_sim.recommend.options import Option, measured_option


def option(name, seconds, money, wan_bytes=0.0):
    labels = {"instance": name, "count": "1", "system": "dlion"}
    candidate = Candidate(name, labels, {"cluster.clouds": [{"name": "east"}]}, 1.0)
    numbers = map(mean_of, ([seconds], [money], [wan_bytes], [wan_bytes], [0.9]))
    return Option(candidate, *numbers, seeds=1, missed=0, is_lower_bound=False)


def observation(seconds, gap=1.0, spent=0.0):
    took = Duration(seconds, reached=True, gap=gap)
    return SimpleNamespace(took=took, money=1.0 + spent, wan_bytes=spent, bytes=spent, metric=0.9)


def sentence_of(goal, known, tied):
    race = SimpleNamespace(
        winners=[each.candidate for each in known],
        tied=[each.candidate for each in tied],
        resolves=lambda seconds, others: abs(seconds - others) > 1.0,
    )
    return sentence(SimpleNamespace(goal=goal, race=race), known)


def test_the_summary_says_what_decided_between_tied_candidates():
    known = [option("large", 120.0, 0.465), option("small", 240.0, 0.465)]
    deadline, budget = Goal(deadline=600.0), Goal(budget=1.0)
    assert sentence_of(deadline, known, known).endswith(
        "and of 2 without a significant difference in cost the fastest: 2 min and 0.465 (deadline 10 min)"
    )
    assert "is the fastest, and of 2 without a significant difference in time the cheapest: " in sentence_of(
        budget, known, known
    )
    assert "is the cheapest: " in sentence_of(deadline, known, known[:1])


def test_without_prices_the_summary_names_what_is_as_fast_with_fewer_bytes():
    known = [
        option("first", 8.0, math.nan, 158e6),
        option("second", 9.0, math.nan, 642e3),
        option("third", 10.0, math.nan),
    ]
    assert sentence_of(Goal(deadline=60.0, is_fastest=True), known, known[:1]).endswith(
        "is the fastest, though not significantly faster than 1 other, of which dlion on 1 second in east sends "
        "642 kB over the WAN, not 158 MB: 8 s (deadline 60 s)"
    )


def test_intervals_exclude_seeds_that_missed_the_target():
    candidate = option("small", 1.0, 1.0).candidate
    reached = [observation(10.0), observation(12.0)]
    several = measured_option(candidate, reached, missed=1).as_json()
    assert (several["seeds"], several["missed"]) == (2, 1)
    assert several["seconds"]["low"] < 10.0 < 12.0 < several["seconds"]["high"]
    one = measured_option(candidate, reached[:1]).as_json()
    assert one["seconds"]["mean"] == 10.0
    assert math.isnan(one["seconds"]["low"])


def test_the_interval_of_a_quantity_that_cannot_be_negative_begins_at_0():
    """With two seeds, the half width of a t-interval is 12.7 standard errors."""
    found = measured_option(option("small", 1.0, 1.0).candidate, [observation(10.0, spent=1.0), observation(30.0)])
    content = found.as_json()
    assert [content[each]["low"] for each in ("seconds", "money", "wan_bytes", "bytes")] == [0.0] * 4
    assert content["seconds"]["high"] > 100.0


def test_a_target_at_the_first_evaluation_is_a_bound():
    """The target may have been reached long before it."""
    took = measured_option(option("small", 1.0, 1.0).candidate, [observation(10.0, gap=10.0), observation(12.0)])
    assert took.takes == "<= 11 s and <= 1"
    content = took.as_json()
    assert [content[each]["bound"] for each in ("seconds", "money", "wan_bytes", "bytes", "metric")] == ["<="] * 4 + [
        ""
    ]


@pytest.mark.parametrize(
    ("value", "other", "words"),
    [
        (1.2, 1.0, "20 % dearer"),
        (0.965, 1.0, "3.5 % cheaper"),
        (1.0004, 1.0, "as dear"),
        (3.5, 1.0, "250 % dearer"),
        (1.0, 0.0, "dearer"),
        (0.0, 0.0, "as dear"),
    ],
)
def test_differences_are_relative_unless_the_other_is_free(value, other, words):
    assert compared(value, other, "dearer", "cheaper") == words
