from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.learning import BatchSampler

SHARD = np.arange(100, 117)


def sampler(seed=0):
    return BatchSampler(SHARD, np.random.default_rng(seed))


@given(sizes=st.lists(st.integers(1, len(SHARD)), max_size=40))
def test_each_epoch_is_a_permutation_of_the_shard(sizes):
    own = sampler()
    batches = [own.take(size) for size in sizes]
    assert [len(batch) for batch in batches] == sizes
    dealt = np.concatenate([*batches, own.take(1)])
    for start in range(0, len(dealt) - len(SHARD) + 1, len(SHARD)):
        assert sorted(dealt[start : start + len(SHARD)]) == SHARD.tolist()


def test_the_order_does_not_depend_on_the_sizes():
    one, other = sampler(), sampler()
    assert np.concatenate([one.take(5) for _ in range(8)]).tolist() == [other.take(1).item() for _ in range(40)]


def test_epochs_differ():
    own = sampler()
    assert own.take(len(SHARD)).tolist() != own.take(len(SHARD)).tolist()


def test_a_pickled_sampler_continues():
    own = sampler()
    own.take(11)
    again = pickle.loads(pickle.dumps(own))
    assert [own.take(7).tolist() for _ in range(9)] == [again.take(7).tolist() for _ in range(9)]


@pytest.mark.parametrize("size", [0, -1, len(SHARD) + 1])
def test_sizes_out_of_range(size):
    with pytest.raises(ValueError, match="shard of 17"):
        sampler().take(size)
