"""Intervals, ratios and tests, held against other ways to compute them."""

import math

import numpy as np
import pytest
from scipy import stats

from dlion_sim.analysis.statistics import Duration, holm, mean_of, paired_p, predicted, ratio, restricted_mean


def reached(*seconds):
    return {seed: Duration(each, reached=True) for seed, each in enumerate(seconds)}


def test_another_value_lies_in_the_prediction_interval():
    """By its definition, for three values of standard deviation 1: 2 +- t(0.975, 2) sqrt(1 + 1/3)."""
    found = predicted([1.0, 2.0, 3.0])
    assert (found.low, found.value, found.high) == pytest.approx(
        (2 - 4.303 * math.sqrt(4 / 3), 2, 2 + 4.303 * math.sqrt(4 / 3)), abs=1e-3
    )
    assert math.isnan(predicted([1.0]).low)


def test_a_mean_has_its_t_interval():
    found = mean_of([0.9, 0.8, 0.7])
    # 4.303 is the 97.5 % point of Student's t with two degrees of freedom.
    assert found.value == pytest.approx(0.8)
    assert found.high - found.value == pytest.approx(4.303 * 0.1 / math.sqrt(3), rel=1e-3)
    assert found.value - found.low == pytest.approx(found.high - found.value)


def test_one_value_has_no_interval():
    found = mean_of([0.9])
    assert found.value == 0.9
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert math.isnan(mean_of([]).value)


def test_intervals_cover_the_mean_at_their_level():
    rng = np.random.default_rng(0)
    found = [mean_of(list(rng.normal(5.0, 2.0, 3))) for _ in range(2000)]
    assert np.mean([each.low < 5 < each.high for each in found]) == pytest.approx(0.95, abs=0.015)


def test_a_missed_target_counts_with_the_end_of_its_run():
    durations = [*reached(10, 20).values(), Duration(60.0, reached=False)]
    found = restricted_mean(durations)
    assert (found.value, found.bound) == (30, ">")
    assert math.isnan(found.low)
    assert restricted_mean(durations[:2]).bound == ""


@pytest.mark.parametrize(("above", "below"), [((30, 44, 20), (10, 11, 10)), ((5, 7), (9, 8))])
def test_a_ratio_of_pairs_is_their_geometric_mean_with_the_interval_of_its_logarithm(above, below):
    found = ratio(reached(*above), reached(*below))
    logs = np.log(above) - np.log(below)
    expected = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    assert found.value == pytest.approx(math.exp(logs.mean()))
    assert (found.low, found.high) == pytest.approx((math.exp(expected.low), math.exp(expected.high)))
    assert (found.pairs, found.bound) == (len(above), "")


def test_only_common_seeds_are_pairs():
    one, other = reached(30, 44, 1000), reached(10, 11)
    assert ratio(one, other) == ratio({seed: one[seed] for seed in other}, other)


def test_without_pairs_a_ratio_has_welchs_interval():
    one = reached(30, 44, 20)
    other = {seed + 7: each for seed, each in reached(10, 14).items()}
    found = ratio(one, other)
    logs = [np.log([each.seconds for each in side.values()]) for side in (one, other)]
    expected = stats.ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
    assert found.pairs == 0
    assert found.value == pytest.approx(math.exp(logs[0].mean() - logs[1].mean()))
    assert (found.low, found.high) == pytest.approx((math.exp(expected.low), math.exp(expected.high)))


@pytest.mark.parametrize(
    ("above", "below", "value", "bound"),
    [
        ((True, False), (True, True), 3.0, ">"),
        ((True, True), (False, True), 3.0, "<"),
        ((True, True), (False, False), 3.0, "<"),
        ((True, False), (True, False), math.nan, ""),
        ((True, False), (False, True), math.nan, ""),
    ],
)
def test_ratios_with_missed_targets_are_bounds(above, below, value, bound):
    one = {seed: Duration(30.0, each) for seed, each in enumerate(above)}
    other = {seed: Duration(10.0, each) for seed, each in enumerate(below)}
    found = ratio(one, other)
    assert found.value == pytest.approx(value, nan_ok=True)
    assert (found.bound, found.pairs) == (bound, 2)
    assert math.isnan(found.low)


def test_durations_of_zero_have_no_ratio():
    assert math.isnan(ratio(reached(0, 10), reached(5, 5)).value)
    assert math.isnan(ratio({}, reached(5)).value)


def test_the_p_value_is_that_of_the_paired_t_test():
    one, other = (0.8, 0.7, 0.75), (0.6, 0.65, 0.6)
    found = paired_p(dict(enumerate(one)), {**dict(enumerate(other)), 9: 0.1})
    assert found == pytest.approx(stats.ttest_rel(one, other).pvalue)


def test_p_values_without_spread_or_pairs():
    assert math.isnan(paired_p({0: 0.5}, {0: 0.6}))
    assert math.isnan(paired_p({0: 0.5, 1: 0.6}, {2: 0.5, 3: 0.6}))
    assert paired_p({0: 0.5, 1: 0.6}, {0: 0.5, 1: 0.6}) == 1
    assert paired_p({0: 0.5, 1: 0.6}, {0: 0.4, 1: 0.5}) == 0


def test_holms_correction():
    # By hand: 0.01 * 4, 0.02 * 3, then 0.03 * 2 and 0.04 * 1, of which none may be below the one before.
    assert holm([0.03, 0.01, math.nan, 0.04, 0.02]) == pytest.approx([0.06, 0.04, math.nan, 0.06, 0.06], nan_ok=True)
    assert holm([0.6, 0.7]) == [1, 1]


def test_coarse_durations_are_bounds():
    coarse, fine = {0: Duration(10.0, reached=True, gap=10.0)}, {0: Duration(30.0, reached=True)}
    found = restricted_mean([*coarse.values(), *fine.values()])
    assert (found.value, found.bound) == (20, "<=")
    found = ratio(fine, coarse)
    assert (found.value, found.bound, found.pairs) == (pytest.approx(3), "~", 1)
    assert ratio({0: Duration(30.0, reached=False)}, coarse).bound == ">"


def test_intervals_cover_the_gap_between_evaluations():
    """Seeds that reach a target at the same evaluation need not have reached it at the same time."""
    same = {seed: Duration(12.0, reached=True, gap=2.0) for seed in range(3)}
    found = restricted_mean([*same.values()])
    assert (found.value, found.low, found.high) == (12.0, 10.0, 14.0)
    slower = {seed: Duration(24.0, reached=True, gap=4.0) for seed in range(3)}
    found = ratio(slower, same)
    assert (found.value, found.low, found.high) == (pytest.approx(2), pytest.approx(2 / 1.2), pytest.approx(2 * 1.2))
    apart = [Duration(each, reached=True, gap=2.0) for each in (10.0, 20.0, 30.0)]
    assert restricted_mean(apart) == mean_of([10.0, 20.0, 30.0], least=0.0)
    assert math.isnan(restricted_mean(apart[:1]).high)
