"""Weighted dynamic batching: the split, the fit, the growth and the weights (oracles 2, 8 and 9)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.batching.profile import CostFit, fit_cost, split
from dlion_sim.protocol.batching.weighted_dynamic import GlobalBatchSchedule
from dlion_sim.protocol.messages import Contribution
from tests.protocol.joined import setup, workers_of

fits = st.builds(CostFit, st.floats(0, 0.5), st.floats(1e-5, 0.1))
members = st.lists(st.tuples(fits, st.integers(1, 2000)), min_size=1, max_size=12)


@given(members, st.integers(1, 20_000))
def test_the_split_sums_to_the_global_batch_within_all_limits(members, total):
    costs, limits = zip(*members, strict=True)
    sizes = split(total, costs, limits)
    assert sum(sizes) == min(max(total, len(members)), sum(limits))
    assert all(1 <= size <= limit for size, limit in zip(sizes, limits, strict=True))


def test_the_split_equalises_iteration_times():
    costs = [CostFit(0.01, 0.06 / cores) for cores in (24, 24, 12, 12, 4, 4)]
    sizes = split(192, costs, [10_000] * 6)
    assert sizes == [58, 58, 29, 29, 9, 9]
    times = [cost.seconds(size) for cost, size in zip(costs, sizes, strict=True)]
    assert max(times) / min(times) < 1.2


@given(fits, st.lists(st.integers(1, 500), min_size=2, max_size=20, unique=True))
def test_a_line_is_fitted_exactly(truth, sizes):
    fit = fit_cost([(size, truth.seconds(size)) for size in sizes])
    for size in sizes:
        assert fit.seconds(size) == pytest.approx(truth.seconds(size), rel=1e-6)


def test_equal_batches_determine_the_rate_beyond_the_former_alpha():
    assert fit_cost([(10, 2.0), (10, 4.0)]) == CostFit(0.0, 0.3)
    assert fit_cost([(10, 2.0), (10, 4.0)], CostFit(1.0, 9.0)) == CostFit(1.0, 0.2)


@given(
    start=st.integers(1, 500),
    increment=st.integers(1, 500),
    factor=st.floats(1.1, 4),
    samples=st.integers(100, 50_000),
)
def test_the_global_batch_grows_by_addition_then_by_multiplication_and_never_above_its_cap(
    start, increment, factor, samples
):
    schedule = GlobalBatchSchedule(
        start=start, increment=increment, factor=factor, warmup_cap=0.01, cap=0.1, samples=samples
    )
    cap = max(start, int(0.1 * samples))
    sizes = [schedule.at(iteration) for iteration in range(3000)]
    assert sizes[0] == start
    assert max(sizes) <= cap
    changes = [(a, b) for a, b in pairwise(sizes) if a != b]
    for before, after in changes:
        grown = before + increment if before < 0.01 * samples else max(int(before * factor), before + 1)
        assert after == min(grown, cap)


def test_the_global_batch_changes_once_an_epoch():
    schedule = GlobalBatchSchedule(start=192, increment=192, factor=2.0, warmup_cap=0.01, cap=0.1, samples=50_000)
    sizes = [schedule.at(iteration) for iteration in range(800)]
    assert sizes[260] == 192
    assert sizes[261] == 384
    assert sorted(set(sizes)) == [192, 384, 576, 1152, 2304, 4608, 5000]


def batching(weights, worker=0, batch_size=32):
    (one,) = workers_of(
        {"name": "dlion", "batching": {"weights": weights}}, [setup(worker, workers=6, batch_size=batch_size)]
    )
    return one.choices.batching


@pytest.mark.parametrize(
    ("weights", "sent", "own", "weight"),
    [
        *((weights, 32, 32, 1) for weights in ("ratio", "share", "equal")),
        ("ratio", 58, 29, 2),
        ("ratio", 29, 58, 0.5),
        ("ratio", 1000, 1, 8),
        ("ratio", 1, 1000, 1 / 8),
    ],
)
def test_gradients_of_more_samples_weigh_more_within_limits(weights, sent, own, weight):
    assert batching(weights).weight(Contribution(0, sent, 100.0), own_batch_size=own) == weight


@given(sender=st.integers(10, 60), receiver=st.integers(10, 60))
def test_ratio_and_share_differ_by_n_times_the_receivers_batch_over_the_global_one(sender, receiver):
    gradient = Contribution(0, sender, 100.0)
    ratio = batching("ratio").weight(gradient, receiver)
    share = batching("share").weight(gradient, receiver)
    assert share == pytest.approx(ratio * 6 * receiver / 192)


def test_the_learning_rate_may_be_proportional_to_the_global_batch():
    (worker,) = workers_of(
        {"name": "dlion", "batching": {"learning_rate": "linear"}}, [setup(workers=6, samples=60_000)]
    )
    batching = worker.choices.batching
    assert batching.global_batch_size(400) == 2 * batching.global_batch_size(0)
    assert batching.weight(Contribution(0, 32, 100.0), 32) == 1
    assert batching.weight(Contribution(400, 64, 100.0), 64) == 2
