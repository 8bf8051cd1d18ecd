"""Adaptive top-k: the entries that it sends, by what links carry and the budget."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.exchange.adaptive_top_k import AdaptiveTopKExchange
from dlion_sim.protocol.updates import LocalGradient
from tests.protocol.flushing import flushed
from tests.protocol.joined import setup

SIZE = 400


def exchange(carried=10_000, size=SIZE, **parameters):
    """Of a worker whose links carry so many entries while a gradient is computed."""
    one = AdaptiveTopKExchange(AdaptiveTopKExchange.Parameters(**parameters), setup(variables=(size,)))
    one.setup.links.carried = lambda peers: [8.0 * carried for _ in peers]
    return one


def sent(one, gradient, iteration=0):
    own = LocalGradient(iteration, 32, gradient, seconds=1.0, factor=1 / 3, time=0.0)
    indices, values = one.outgoing(own).messages[0][1].tensors
    update = torch.zeros(len(gradient))
    update[indices.long()] = values
    return len(indices), update


@given(st.integers(0, 1000), st.floats(0, 1), st.lists(st.integers(0, 60), min_size=2, max_size=10))
def test_it_is_the_rule_written_out(seed, share, carried):
    """At least 4 of 400 entries, at most 40; and what is left over is all that was not sent."""
    one = exchange(density=0.01, most=0.1, link_share=max(share, 1e-6))
    generator, residual, received = torch.Generator().manual_seed(seed), torch.zeros(SIZE), torch.zeros(SIZE)
    for iteration, entries in enumerate(carried):
        one.setup.links.carried = lambda peers, least=entries: [8.0 * (least + peer) for peer in peers]
        gradient = torch.randn(SIZE, generator=generator)
        residual += gradient
        received += gradient
        count, update = sent(one, gradient, iteration)
        slowest = entries + min(one.setup.links.peers)
        assert abs(count - min(40, max(4, share * slowest))) <= 0.5
        assert residual[update != 0].abs().min() >= residual[update == 0].abs().max()
        residual -= update
        received -= update
    torch.testing.assert_close(received, flushed(one)[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("carried", "share", "count"), [(0, 0.5, 4), (10, 0.5, 5), (100, 0.5, 20), (10_000, 1e-6, 4), (12, 1.0, 12)]
)
def test_links_bound_it_and_idle_ones_are_used(carried, share, count):
    """At least 4 of 400 entries, at most 20."""
    assert sent(exchange(carried, density=0.01, most=0.05, link_share=share), torch.ones(SIZE).cumsum(0))[0] == count


@pytest.mark.parametrize(("budget", "each"), [(8 * 4, 4), (8 * 10, 10), (8 * 2, 2), (8 * 1000, 20)])
def test_a_budget_bounds_what_is_sent_on_average(budget, each):
    """At least 4 of 400 entries, at most 20, but as many as there are bytes for: an iteration takes a second."""
    one = exchange(density=0.01, most=0.05, link_share=1.0, budget=budget)
    counts = []
    for iteration, gradient in enumerate(torch.randn(30, SIZE)):
        own = LocalGradient(iteration, 32, gradient, seconds=1.0, factor=1 / 3, time=iteration + 1.0)
        counts.append(len(one.outgoing(own).messages[0][1].tensors[0]))
        assert 8 * sum(counts) <= budget * (iteration + 1)
    assert counts == [each] * 30


def test_nothing_is_saved_up_for_while_a_worker_is_not_there():
    """It starts a thousand seconds after the others."""
    one = exchange(density=0.01, most=0.05, link_share=1.0, budget=8 * 10)
    own = LocalGradient(0, 32, torch.randn(SIZE), seconds=1.0, factor=1 / 3, time=1000.0)
    assert len(one.outgoing(own).messages[0][1].tensors[0]) == 10
