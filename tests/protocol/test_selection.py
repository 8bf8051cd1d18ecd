"""Max-N (oracle: the top m of the normalised magnitudes, within the budget unless the floor binds)."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.exchange.max_n import MaxNExchange
from dlion_sim.protocol.exchange.selection import Ranking, SortedRanking
from dlion_sim.protocol.updates import Incoming, LocalGradient, Update
from tests.protocol.flushing import flushed
from tests.protocol.joined import layout, measured, setup

BOTH = pytest.mark.parametrize("kind", [Ranking, SortedRanking])
"""The one for CPUs, and the one for GPUs, which any device can compute."""
VARIABLES = (7, 12, 1)
gradients = st.lists(
    st.floats(-100, 100, width=32) | st.sampled_from([0.0, 1.0, -1.0, 2.0]), min_size=20, max_size=20
).map(torch.tensor)


def magnitudes(gradient, sizes=VARIABLES):
    """|g| over the maximum of its variable, 0 where that is 0."""
    parts = [part / part.max().clamp_min(1e-38) for part in gradient.abs().split(sizes)]
    return torch.cat(parts).nan_to_num(nan=0.0)


@BOTH
@given(gradients)
def test_magnitudes_are_relative_to_their_variables_maximum(kind, gradient):
    ranking, ratios = kind(gradient, layout(*VARIABLES)), magnitudes(gradient)
    for threshold in (1.0, 0.75, 0.5, 1e-6):  # ever farther down
        indices, values = ranking.selections([threshold])[threshold]
        assert indices.tolist() == (ratios.double() >= threshold).nonzero().squeeze(1).tolist()
        assert torch.equal(values, gradient[indices.long()])


@BOTH
@given(
    st.integers(0, 2**31),
    st.lists(st.sampled_from([1, 63, 64, 65, 511, 512, 513, 1100]), min_size=1, max_size=4),
    st.lists(st.sampled_from([1.0, 0.9, 0.1, 1e-6, 1e-38, 1e-44]), max_size=3),
)
def test_no_entry_is_lost_at_the_ends_of_blocks_and_variables(kind, seed, sizes, thresholds):
    random = np.random.default_rng(seed)
    gradient = random.uniform(-1, 1, sum(sizes)) * 10.0 ** random.choice(random.choice([-44, -7, 0, 38], 2), sum(sizes))
    gradient[random.integers(sum(sizes))] = random.choice([0.0, 0.0, -math.inf, math.nan])
    gradient = torch.from_numpy(gradient.astype(np.float32))
    tiny = torch.finfo(torch.float32).tiny
    ratios = torch.cat([part / part.max().clamp_min(tiny) for part in gradient.abs().split(sizes)])
    for threshold, (indices, values) in kind(gradient, layout(*sizes)).selections([*thresholds, 0.0]).items():
        assert indices.tolist() == ((ratios.double() >= threshold) & (ratios > 0)).nonzero().squeeze(1).tolist()
        assert torch.equal(values, gradient[indices.long()])


@BOTH
@given(gradients, st.lists(st.integers(0, 25), min_size=1, max_size=4))
def test_a_selection_is_the_top_of_the_magnitudes_without_splitting_ties(kind, gradient, counts):
    ranking, ratios = kind(gradient, layout(*VARIABLES)), magnitudes(gradient)
    for count, threshold in zip(counts, ranking.thresholds(counts), strict=True):
        indices, _ = ranking.selections([threshold])[threshold]
        assert indices.tolist() == sorted(set(indices.tolist()))
        assert len(indices) <= count
        ordered = np.sort(ratios.numpy())[::-1]
        assert sorted(ratios[indices.long()].tolist(), reverse=True) == ordered[: len(indices)].tolist()
        rest = ordered[len(indices) :]
        if len(rest) and rest[0] > 0:  # the next entries tie, and would not all fit
            assert len(indices) + int((rest == rest[0]).sum()) > count


def max_n(budgets, **parameters):
    """Max-N of a worker whose links to peers 1, 2, ... have carried so many bytes a second."""
    own = setup(workers=len(budgets) + 1, variables=VARIABLES, learning_rate=1.0)
    measured(own.links, *budgets)
    return MaxNExchange(MaxNExchange.Parameters(**parameters), own)


def exchanged(gradient, budgets, n_min=0.85, **parameters):
    """What Max-N sends of `gradient` to each peer whose link has carried `budgets[peer]` bytes a second."""
    exchange = max_n(budgets, n_min=n_min, **parameters)
    return dict(exchange.outgoing(LocalGradient(0, 32, gradient, seconds=1.0, factor=0.5, time=0.0)).messages)


@given(gradients, st.lists(st.floats(1, 400), min_size=1, max_size=4), st.sampled_from([0.85, 50.0]))
def test_a_message_fits_its_links_budget_unless_the_floor_binds(gradient, budgets, n_min):
    ratios = magnitudes(gradient)
    floor = int(((ratios >= 1 - n_min / 100) & (ratios > 0)).sum())
    for peer, message in exchanged(gradient, budgets, n_min).items():
        if len(message.tensors) == 1:
            assert torch.equal(message.tensors[0], gradient)
            assert budgets[peer - 1] >= 80 or 2 * floor >= 20  # sparse would be no smaller
            continue
        indices, values = message.tensors
        assert torch.equal(values, gradient[indices.long()])
        assert message.size <= budgets[peer - 1] or len(indices) == floor
        n_percent = max(n_min, 100 * (1 - float(ratios[indices.long()].min()))) if len(indices) else n_min
        assert math.isclose(message.body.n_percent, n_percent, rel_tol=1e-5)


@given(gradients)
def test_every_variable_with_a_gradient_sends_something_however_slow_the_link(gradient):
    (message,) = exchanged(gradient, [1.0]).values()
    if len(message.tensors) == 1:
        return
    sent = set(message.tensors[0].tolist())
    begin = 0
    for size in VARIABLES:
        if gradient[begin : begin + size].abs().max() > 1e-30:
            assert sent & set(range(begin, begin + size))
        begin += size


@given(gradients, st.lists(st.floats(1, 400), min_size=1, max_size=4), st.sampled_from([0.85, 50.0]))
def test_selections_are_descent_directions_and_the_own_gradient_is_applied_whole(gradient, budgets, n_min):
    """However little a link carries: its inner product with the gradient is positive, as with all of it."""
    one = max_n(budgets, n_min=n_min)
    outgoing = one.outgoing(LocalGradient(0, 32, gradient, seconds=1.0, factor=0.5, time=0.0))
    for _, message in outgoing.messages:
        arrived = torch.zeros(20)
        Update.of(message).add_to(arrived, 1.0)
        assert float(arrived.double() @ gradient.double()) > 0 or gradient.abs().max() < 1e-30
    one.apply(Incoming(0, outgoing.own, [], lambda body: 0.5, one.setup.peers))
    torch.testing.assert_close(one.setup.replica.parameters, -0.5 * gradient)


def test_a_fast_link_gets_the_whole_gradient_and_a_slow_one_a_smaller_n():
    gradient = torch.linspace(0.05, 1, 20)
    messages = exchanged(gradient, [144.0, 104.5, 1e6])
    assert [len(messages[peer].tensors[-1]) for peer in (1, 2, 3)] == [20, 5, 20]
    assert messages[2].body.n_percent < messages[1].body.n_percent == messages[3].body.n_percent == 100


@given(gradients, st.lists(st.floats(1, 400), min_size=1, max_size=4), st.sampled_from([0.85, 50.0]))
def test_links_below_the_floor_may_be_left_out(gradient, budgets, n_min):
    selected = exchanged(gradient, budgets, n_min, below_n_min="skip")
    for peer, message in exchanged(gradient, budgets, n_min).items():
        left_out = len(message.tensors) == 2 and message.size > budgets[peer - 1] and len(message.tensors[0])
        if left_out:
            assert [len(tensor) for tensor in selected[peer].tensors] == [0, 0]
            assert selected[peer].body.n_percent == 0
        elif len(selected[peer].tensors[-1]):
            assert all(map(torch.equal, selected[peer].tensors, message.tensors))


def test_a_link_that_carries_just_the_floor_gets_it():
    """Three entries are within 50 % of their variable's maximum, one of them at just half of it; the link carries 3."""
    gradient = torch.tensor([1.0, 0.5, 0.25, *[0.125] * 4, 1.0, *[0.01] * 11, 0.0])
    (message,) = exchanged(gradient, [64 + 3 * 8.0], n_min=50, below_n_min="skip").values()
    assert [tensor.tolist() for tensor in message.tensors] == [[0, 1, 7], [1.0, 0.5, 1.0]]
    assert message.body.n_percent == 50


def test_a_diverged_gradient_is_handled():
    gradient = torch.ones(20)
    gradient[3], gradient[10] = float("nan"), float("inf")
    (message,) = exchanged(gradient, [120.0]).values()
    assert message.tensors[0].tolist() == [19], "the only variable without such an entry"
    assert 0 <= message.body.n_percent <= 100


@given(st.lists(gradients, min_size=1, max_size=6))
def test_residuals_lose_nothing_on_any_link(all_gradients):
    exchange = max_n([math.inf, 100.0], residual="accumulate")  # of the first link nothing is known
    received = {1: torch.zeros(20), 2: torch.zeros(20)}
    for iteration, gradient in enumerate(all_gradients):
        exchange.setup.links.computed(1.0)
        for peer, message in exchange.outgoing(LocalGradient(iteration, 32, gradient, 1.0, 0.5, 0.0)).messages:
            Update.of(message).add_to(received[peer], 1.0)
    for peer, rest in flushed(exchange).items():
        torch.testing.assert_close(received[peer] + rest, torch.stack(all_gradients).sum(dim=0))


@BOTH
@given(st.integers(0, 2**31), st.integers(1, 4000), st.sampled_from([1, 8, 1000, 10**6]), st.floats(0, 1))
def test_thresholds_are_those_of_a_full_sort(kind, seed, size, levels, part):
    """On many values, of few levels (many ties) and of many."""
    values = torch.rand(size, generator=torch.Generator().manual_seed(seed)) ** 4
    values = (values * levels).round() / levels if levels < 10**6 else values
    values[0] = 1.0  # its magnitudes are these values
    count = round(part * size)
    distinct, times = np.unique(values.numpy(), return_counts=True)
    reaching = np.cumsum(times[::-1])[::-1]  # how many values are at least each distinct one
    fitting = distinct[reaching <= count]
    fitting = fitting[fitting > 0]
    expected = 0.0 if count >= size else float(fitting.min()) if len(fitting) else float("inf")
    assert kind(values, layout(size)).thresholds([count]) == [expected]


@BOTH
@given(st.integers(0, 2**31), st.integers(1, 3000), st.floats(0, 1))
def test_the_top_are_the_greatest_magnitudes(kind, seed, size, part):
    values = torch.randn(size, generator=torch.Generator().manual_seed(seed))
    count = round(part * size)
    indices = kind(values).top(count)
    assert indices.tolist() == values.abs().topk(count).indices.sort().values.tolist()


@BOTH
@pytest.mark.parametrize("order", [1, -1])
def test_a_misleading_sample_costs_time_only(kind, order):
    """Large and small entries alternate in step with the sample, so that it sees only the one or the other."""
    size = 2**18
    gradient = torch.linspace(0.1, 0.2, size)
    gradient[::4] = torch.linspace(1, 2, size // 4)[::order] if order > 0 else 1e-3
    ranking = kind(gradient, layout(size))
    counts = [size // 4, size // 3, size // 2, 7]
    thresholds = ranking.thresholds(counts)
    chosen = ranking.selections(thresholds)
    for count, threshold in zip(counts, thresholds, strict=True):
        assert chosen[threshold][0].numel() in ((count, 1) if order < 0 else (count,))


@BOTH
@pytest.mark.parametrize("length", [0, 19, 21])
def test_a_gradient_of_another_layout_is_refused(kind, length):
    with pytest.raises(ValueError, match="is no gradient of 20 parameters"):
        kind(torch.ones(length), layout(*VARIABLES))
