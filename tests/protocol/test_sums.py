"""Weighted sums of contributions, computed once for all workers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.protocol import sums
from dlion_sim.protocol.messages import Contribution, Message
from dlion_sim.protocol.sums import WeightedSums
from dlion_sim.protocol.updates import Update

SIZE = 6


@st.composite
def terms(draw):
    """Contributions of some senders: whole, a stretch, or single entries, each with a factor."""
    found = []
    for sender in range(draw(st.integers(1, 5))):
        values = torch.tensor(draw(st.lists(st.floats(-8, 8, width=32), min_size=SIZE, max_size=SIZE)))
        kind, iteration = draw(st.sampled_from(["whole", "stretch", "entries"])), draw(st.integers(0, 2))
        if kind == "whole":
            update = Update(sender, Contribution(iteration, 1), (values,))
        elif kind == "stretch":
            update = Update(sender, Contribution(iteration, 1, offset=2), (values[:3],))
        else:
            indices = torch.tensor(sorted(draw(st.sets(st.integers(0, SIZE - 1)))), dtype=torch.int32)
            update = Update(sender, Contribution(iteration, 1), (indices, values[: len(indices)]))
        found.append((update, draw(st.floats(-2, 2))))
    return found


@given(terms(), st.randoms())
def test_a_sum_is_that_of_its_terms_whatever_their_order(terms, random):
    expected = torch.zeros(SIZE)
    for update, factor in terms:
        update.add_to(expected, factor)
    total = WeightedSums().of(terms, SIZE)
    torch.testing.assert_close(total, expected, rtol=1e-5, atol=1e-5)
    shuffled = random.sample(terms, len(terms))
    assert torch.equal(WeightedSums().of(shuffled, SIZE), total)


def entries(sender, size, count, seed):
    """A contribution of so many entries, at random places."""
    generator = torch.Generator().manual_seed(seed)
    indices = torch.randperm(size, generator=generator)[:count].sort().values.to(torch.int32)
    return Update(sender, Contribution(0, 1), (indices, torch.randn(count, generator=generator)))


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=4), st.booleans(), st.floats(-2, 2), st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_the_sum_of_entries_is_to_the_bit_what_operators_add(counts, has_whole, factor, seed):
    size = sums._LARGE + 17
    whole = torch.randn(size, generator=torch.Generator().manual_seed(seed))
    expected = whole * factor if has_whole else torch.zeros(size)
    terms = [(entries(1 + place, size, count, seed + place), 0.3 * (1 + place)) for place, count in enumerate(counts)]
    for each, its_factor in terms:
        each.add_to(expected, its_factor)
    own = [(update(0, whole), factor)] if has_whole else []
    assert torch.equal(WeightedSums().of([*terms, *own], size), expected)


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=4), st.floats(-2, 2), st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_what_is_added_without_a_sum_is_to_the_bit_what_the_sum_adds(counts, times, seed):
    size = sums._LARGE + 17
    mine, total = torch.randn(2, size, generator=torch.Generator().manual_seed(seed))
    terms = [(entries(1 + place, size, count, seed + place), 0.3 * (1 + place)) for place, count in enumerate(counts)]
    terms.append((update(0, total), 0.7))
    expected = mine.add(WeightedSums().of(terms, size), alpha=times)
    WeightedSums().adding(terms, size)(mine, times)
    assert torch.equal(mine, expected)


def test_sums_that_others_may_ask_for_are_not_added_without_being_kept():
    size = sums._LARGE
    whole, some = update(0, torch.ones(size)), entries(1, size, 10, 0)
    for terms in ([whole], [some], [whole, update(1, torch.ones(size))], [whole, update(1, torch.ones(5))]):
        assert WeightedSums().adding([(each, 0.5) for each in terms], size) is None
    small = [(update(0, torch.ones(SIZE)), 0.5), (entries(1, SIZE, 3, 0), 0.5)]
    assert WeightedSums().adding(small, SIZE) is None


@pytest.mark.parametrize(
    "indices", [[-1, 4], [4, sums._LARGE - 5 + sums._BLOCK], [9000, 3], [2**31 - 1], [*range(7), -1], [5000] * 8 + [3]]
)
def test_indices_are_not_trusted(indices):
    size = sums._LARGE - 5 + sums._BLOCK
    bad = Update(1, Contribution(0, 1), (torch.tensor(indices, dtype=torch.int32), torch.ones(len(indices))))
    terms = [(update(0, torch.ones(size)), 0.5), (bad, 0.5)]
    with pytest.raises(IndexError):
        WeightedSums().of(terms, size)
    room = torch.zeros(size + 2 * sums._BLOCK)
    with pytest.raises(IndexError):
        WeightedSums().adding(terms, size)(room[sums._BLOCK : sums._BLOCK + size], 1.0)
    assert not room[: sums._BLOCK].any()
    assert not room[sums._BLOCK + size :].any()


def update(sender, values, iteration=0):
    return Update(sender, Contribution(iteration, 1), (values,))


def test_a_sum_is_computed_once():
    cached, first, second = WeightedSums(), torch.ones(SIZE), torch.ones(SIZE)
    total = cached.of([(update(0, first), 0.5), (update(1, second), 0.5)], SIZE)
    assert cached.of([(update(1, second), 0.5), (update(0, first), 0.5)], SIZE) is total
    assert cached.of([(update(0, first), 0.5), (update(1, second), 0.25)], SIZE)[0] == 0.75
    assert cached.of([(update(0, first), 0.5), (update(1, second.clone()), 0.5)], SIZE) is not total
    assert cached.of([(update(0, first), 0.5)], SIZE)[0] == 0.5


def test_what_is_derived_is_computed_once():
    cached, asked = WeightedSums(), []

    def added(tensors):
        asked.append(len(tensors))
        return sum(tensors)

    one, other = torch.ones(SIZE), torch.ones(SIZE)
    first = cached.derived([one, other], "sum", added)
    assert cached.derived([one, other], "sum", added) is first
    assert asked == [2]
    for tensors, key in (([one, other], "another"), ([one, other.clone()], "another"), ([one], "another")):
        assert torch.equal(cached.derived(tensors, key, added), sum(tensors))
    assert asked == [2, 2, 2, 1]


def test_a_contribution_is_read_once_for_all_its_receivers():
    calls = []

    def reader(tensors):
        calls.append(tensors)
        return tensors[0] * 2

    update = Update.of(Message(1, Contribution(0, 1), (torch.ones(SIZE),)))
    first = update.read(reader)
    assert Update.of(update).read(reader) is first
    assert torch.equal(first, torch.full((SIZE,), 2.0))
    assert calls == [update.tensors]


def test_sums_are_prepared_before_the_first_one():
    """The compiled function is there already for what arguments sums have, whether or not they are kept."""
    size = sums._LARGE
    sums.prepare(size)
    prepared = list(sums._add_up.signatures)
    whole = update(0, torch.ones(size))
    few = Update(1, Contribution(0, 1), (torch.tensor([1], dtype=torch.int32), torch.ones(1)))
    WeightedSums().of([(few, 1.0), (few, 1.0)], size)
    WeightedSums().of([(whole, 1.0), (few, 1.0)], size)
    WeightedSums().adding([(whole, 1.0), (few, 1.0)], size)(torch.zeros(size), 1.0)
    assert sums._add_up.signatures == prepared
    assert len(prepared) == 1
