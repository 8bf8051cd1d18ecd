"""Ako (oracle 5): each entry of each gradient reaches each peer exactly once, within p iterations."""

import math
from itertools import combinations, pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.errors import InputError
from dlion_sim.protocol.exchange.partitions import PartitionedExchange, by_bytes, by_layers
from dlion_sim.protocol.updates import LocalGradient
from tests.protocol.flushing import flushed
from tests.protocol.joined import measured, setup

VARIABLES = (7, 12, 1)


def exchange(worker=0, workers=3, **parameters):
    choice = PartitionedExchange.Parameters.model_validate(parameters)
    return PartitionedExchange(choice, setup(worker, workers, variables=VARIABLES))


def message(one, gradient, iteration=0):
    """What all peers get of a gradient."""
    one.setup.links.computed(1.0)
    outgoing = one.outgoing(LocalGradient(iteration, 32, gradient, seconds=1.0, factor=1 / 3, time=0.0))
    assert torch.equal(outgoing.own.tensors[0], gradient)
    assert len({id(message) for _, message in outgoing.messages}) == 1, "the same to all"
    return outgoing.messages[0][1]


def sent(one, gradient, iteration=0):
    """The same as a vector."""
    part = message(one, gradient, iteration)
    values, offset = part.tensors[0], part.body.offset
    vector = torch.zeros(20)
    vector[offset : offset + len(values)] = values
    return vector


@given(
    st.integers(1, 20),
    st.sampled_from(["bytes", "layers"]),
    st.sampled_from(["same", "spread"]),
    st.integers(0, 2),
    st.integers(1, 40),
    st.integers(0, 2**31),
)
def test_every_entry_arrives_exactly_once_within_p_iterations(count, by, first, worker, iterations, seed):
    """Gradients that are powers of two apart, so that a sum tells which of them it holds."""
    one = exchange(worker, partitions=count, by=by, first=first)
    cycle = len(by_layers(VARIABLES, min(count, 3))) if by == "layers" else count
    gradients = torch.randint(1, 1000, (iterations, 20), generator=torch.Generator().manual_seed(seed)).float()
    received = torch.zeros(20)
    for iteration, gradient in enumerate(gradients):
        received += sent(one, gradient, iteration)
        due = gradients[: max(0, iteration + 2 - cycle)].sum(dim=0)
        assert (received >= due).all(), "nothing is more than p - 1 iterations late"
        assert (received <= gradients[: iteration + 1].sum(dim=0)).all(), "nothing comes twice"
    assert torch.equal(received + flushed(one)[(worker + 1) % 3], gradients.sum(dim=0))


@given(st.integers(1, 1000), st.integers(1, 50))
def test_partitions_by_bytes_are_equal_and_cover_all(size, count):
    count = min(size, count)
    stretches = by_bytes(size, count)
    assert len(stretches) == count
    assert [stretches[0][0], stretches[-1][1]] == [0, size]
    assert all(a[1] == b[0] for a, b in pairwise(stretches))
    lengths = [end - begin for begin, end in stretches]
    assert max(lengths) - min(lengths) <= 1


@given(st.lists(st.integers(1, 50), min_size=1, max_size=7), st.integers(1, 5))
def test_partitions_by_layers_are_the_minimax_linear_partition(sizes, count):
    stretches = by_layers(sizes, count)
    assert [stretches[0][0], stretches[-1][1]] == [0, sum(sizes)]
    assert len(stretches) <= count
    best = min(
        max(sum(sizes[a:b]) for a, b in zip((0, *cut), (*cut, len(sizes)), strict=True))
        for parts in range(1, min(count, len(sizes)) + 1)
        for cut in combinations(range(1, len(sizes)), parts - 1)
    )
    assert max(end - begin for begin, end in stretches) == best


def lengths(one, count):
    """Of so many messages, for gradients of 80 bytes that take a second each."""
    return [int(sent(one, torch.ones(20), number).count_nonzero()) for number in range(count)]


def cycle(one):
    """p: so many messages come until one ends with the last entry, as the one before the first of them did."""
    parts = (message(one, torch.ones(20)) for _ in range(20))
    return next(count for count, part in enumerate(parts, 1) if part.body.offset + len(part.tensors[0]) == 20)


def test_single_entries_are_sent_until_every_link_is_measured():
    one = exchange()
    assert lengths(one, 3) == [1, 1, 1]
    measured(one.setup.links, 40.0)
    assert lengths(one, 1) == [1], "nothing is known of the link to 2"
    measured(one.setup.links, 40.0, 40.0)
    assert lengths(one, 2) == [6, 10], "up to the first partition's end, then whole partitions"


@pytest.mark.parametrize(("bandwidth", "p"), [("slowest", 8), ("sum", math.ceil(80 * 2 / 50))])
def test_p_follows_from_the_slowest_link_or_from_the_sum(bandwidth, p):
    """ceil(gradient bytes * iterations per second * (n - 1) / bandwidth), of links of 10 and 40 bytes a second."""
    one = exchange(bandwidth=bandwidth)
    measured(one.setup.links, 10.0, 40.0)
    assert lengths(one, 2 * p) == 2 * [end - begin for begin, end in by_bytes(20, p)]


def test_p_rises_at_once_and_falls_with_hysteresis():
    one = exchange(bandwidth_smoothing=1)
    chosen = []
    for rate in (20.1, 19.9, 20.1, 20.9, 21.2, 40.0):  # 80 bytes a gradient: p of 4 needs 20 a second
        measured(one.setup.links, rate, rate)
        chosen.append(cycle(one))
    assert chosen == [4, 5, 5, 5, 4, 3]


def test_each_worker_may_have_its_own_p():
    one, two = (exchange(worker, partitions=[2, 5, 1]) for worker in (0, 1))
    assert [int(sent(each, torch.ones(20)).sum()) for each in (one, two)] == [10, 4]


def test_workers_begin_with_the_same_partition_or_spread_over_the_gradient():
    for first, begins in (("same", [0, 0, 0]), ("spread", [0, 5, 10])):
        parts = [message(exchange(worker, partitions=4, first=first), torch.ones(20)) for worker in range(3)]
        assert [part.body.offset for part in parts] == begins
    by_bandwidth = [message(exchange(worker, first="spread"), torch.ones(20)) for worker in range(3)]
    assert [part.body.offset for part in by_bandwidth] == [0, 6, 13]


def test_a_list_of_the_wrong_length_is_refused():
    with pytest.raises(InputError, match="2 values for 3 workers"):
        exchange(partitions=[1, 2])
