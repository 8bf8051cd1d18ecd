from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dlion_sim.errors import InputError
from dlion_sim.learning import class_histogram, hold_out, partition

KINDS = ("iid", "dirichlet", "label_shards")
LABELS = np.random.default_rng(0).integers(0, 10, 5000)


def rng(seed=0):
    return np.random.default_rng(seed)


@given(
    kind=st.sampled_from(KINDS),
    spare=st.integers(0, 300),
    classes=st.integers(1, 12),
    workers=st.integers(1, 8),
    shards_per_worker=st.integers(1, 4),
    alpha=st.floats(0.3, 100),
    seed=st.integers(0, 2**32),
)
def test_every_sample_lies_with_one_worker_and_every_worker_has_one(
    kind, spare, classes, workers, shards_per_worker, alpha, seed
):
    samples = workers * shards_per_worker + spare
    labels = rng(seed).integers(0, classes, samples)
    try:
        shards = partition(kind, labels, workers, rng(seed), alpha=alpha, shards_per_worker=shards_per_worker)
    except InputError:  # Dirichlet draws may fail to give everyone a sample; the other kinds never do
        assume(kind != "dirichlet")
        raise
    assert len(shards) == workers
    assert all(len(shard) for shard in shards)
    assert sorted(np.concatenate(shards)) == list(range(samples))


@pytest.mark.parametrize("kind", KINDS)
def test_generator_decides(kind):
    first, again, other = (partition(kind, LABELS, 6, rng(seed)) for seed in (1, 1, 2))
    assert all(map(np.array_equal, first, again))
    assert not all(map(np.array_equal, first, other))


def test_iid_sizes_differ_by_one_at_most_and_classes_are_even():
    shards = partition("iid", LABELS, 6, rng())
    assert {len(shard) for shard in shards} == {833, 834}
    histogram = np.array(class_histogram(LABELS, shards, 10))
    assert histogram.shape == (6, 10)
    assert histogram.sum(axis=0).tolist() == np.bincount(LABELS).tolist()
    assert np.abs(histogram - 5000 / 60).max() < 5 * np.sqrt(5000 / 60)


def test_alpha_governs_the_skew():
    def largest_share(alpha):
        histogram = np.array(class_histogram(LABELS, partition("dirichlet", LABELS, 6, rng(), alpha=alpha), 10))
        return (histogram.max(axis=1) / histogram.sum(axis=1)).mean()

    assert largest_share(0.1) > largest_share(1.0) > largest_share(1000.0)
    assert largest_share(1000.0) < 0.15


def test_label_shards_limit_the_classes_of_a_worker():
    labels = np.repeat(np.arange(10), 100)
    histogram = np.array(class_histogram(labels, partition("label_shards", labels, 5, rng(), shards_per_worker=2), 10))
    assert ((histogram > 0).sum(axis=1) == 2).all()


@pytest.mark.parametrize("kind", KINDS)
def test_too_few_samples(kind):
    with pytest.raises(InputError, match=r"partition: 3 samples cannot be cut into \d+ parts"):
        partition(kind, LABELS[:3], 4, rng())


def test_hopeless_dirichlet():
    with pytest.raises(InputError, match="raise alpha or take fewer workers"):
        partition("dirichlet", LABELS[:60], 50, rng(), alpha=0.01)


def test_unknown_kind():
    with pytest.raises(InputError, match="allowed: iid, dirichlet, label_shards, owners, shared"):
        partition("sorted", LABELS, 4, rng())


def test_shared_gives_everyone_everything():
    shards = partition("shared", np.zeros(7, np.int64), 3, rng())
    assert [shard.tolist() for shard in shards] == [list(range(7))] * 3


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=8),
    fraction=st.floats(0.02, 0.5),
    seed=st.integers(0, 2**32),
)
def test_of_each_class_the_same_part_is_held_out(sizes, fraction, seed):
    labels = rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    assume(fraction * max(sizes) > 0.5)
    held_out = hold_out(labels, fraction, rng(seed))
    assert len(set(held_out)) == len(held_out)
    ((*counts,),) = class_histogram(labels, [held_out], len(sizes))
    for count, size in zip(counts, sizes, strict=True):
        assert abs(count - fraction * size) <= 0.5
        assert count < size
    assert np.array_equal(hold_out(labels, fraction, rng(seed)), held_out)


def test_what_is_held_out_is_drawn_and_in_no_order():
    first, other = (hold_out(LABELS, 0.2, rng(seed)) for seed in (0, 1))
    assert len(set(first) & set(other)) == pytest.approx(0.2 * len(first), rel=0.3)
    # The first of them are of all classes alike, as all of them are.
    begin = np.array(class_histogram(LABELS, [first[:300]], 10))
    assert np.abs(begin - 30).max() < 5 * np.sqrt(30)


def test_too_little_to_hold_out():
    with pytest.raises(InputError, match=r"validation: 0\.01 of no class is a whole .*allowed: 0\.1 to 0\.5"):
        hold_out(np.repeat([0, 1], 10), 0.01, rng())
    assert len(hold_out(np.repeat([0, 1], 10), 0.1, rng())) == 2
