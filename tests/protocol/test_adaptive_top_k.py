"""Adaptive top-k: the entries that it sends, and what makes them more."""

import numpy as np
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


def gradients(seed, common, count):
    """Gradients of which a part repeats."""
    generator = torch.Generator().manual_seed(seed)
    same = torch.randn(SIZE, generator=generator)
    for _ in range(count):
        yield common * same + (1 - common**2) ** 0.5 * torch.randn(SIZE, generator=generator)


@given(st.integers(0, 1000), st.floats(0, 1), st.sampled_from([0.01, 0.05]), st.sampled_from([0.1, 0.5]))
def test_it_is_the_rule_written_out(seed, common, density, most):
    one = exchange(density=density, most=most, link_share=1e-6)
    residual, squared, independent, received = np.zeros(SIZE, np.float32), None, 0.0, torch.zeros(SIZE)
    for iteration, gradient in enumerate(gradients(seed, common, 20)):
        residual = residual + gradient.numpy()
        norm = float(gradient.square().sum())
        squared = norm if squared is None else 0.9 * squared + 0.1 * norm
        independent += norm
        whole = float((residual**2).sum())
        wanted = SIZE * squared * (whole - independent) / (4 * 2 * independent**2)
        expected = min(max(wanted, round(density * SIZE)), round(most * SIZE))
        count, update = sent(one, gradient, iteration)
        assert abs(count - expected) <= 1
        assert np.abs(residual[update.numpy() != 0]).min() >= np.abs(residual[update.numpy() == 0]).max()
        independent *= 1 - float(update.square().sum()) / whole
        residual = residual - update.numpy()
        received += update
    torch.testing.assert_close(
        received + flushed(one)[1], torch.stack([*gradients(seed, common, 20)]).sum(0), rtol=1e-4, atol=1e-3
    )


def test_gradients_that_repeat_are_sent_in_larger_part_than_independent_ones():
    sizes, shares = {}, {}
    for common in (0.0, 0.5, 0.8):
        one = exchange(density=0.01, most=0.5, link_share=1e-6)
        sizes[common] = np.mean([sent(one, each)[0] for each in gradients(1, common, 400)][200:]) / SIZE
        residual = flushed(one)[1]
        repeated = next(gradients(1, 1.0, 1))
        shares[common] = float(residual @ repeated / repeated.norm()) ** 2 / float(residual.square().sum())
    assert sizes[0.0] == pytest.approx(0.01, abs=0.005)
    assert 2 * sizes[0.0] < sizes[0.5] < sizes[0.8] < 0.2
    assert max(shares.values()) < 0.8


@pytest.mark.parametrize(
    ("carried", "share", "count"), [(0, 0.5, 4), (10, 0.5, 5), (100, 0.5, 20), (10_000, 1e-6, 4), (12, 1.0, 6)]
)
def test_links_bound_it_and_idle_ones_are_used(carried, share, count):
    """At least 4 of 400 entries, at most 20, of which a first gradient needs no more than 4."""
    assert sent(exchange(carried, density=0.01, most=0.05, link_share=share), torch.ones(SIZE).cumsum(0))[0] == count


@pytest.mark.parametrize(("budget", "each"), [(8 * 4, 4), (8 * 10, 10), (8 * 2, 2), (8 * 1000, 20)])
def test_a_budget_bounds_what_is_sent_on_average(budget, each):
    """At least 4 of 400 entries, at most 20, but as many as there are bytes for: an iteration takes a second."""
    one = exchange(density=0.01, most=0.05, link_share=1.0, budget=budget)
    counts = []
    for iteration, gradient in enumerate(gradients(1, 0.9, 30)):
        own = LocalGradient(iteration, 32, gradient, seconds=0.5, factor=1 / 3, time=iteration + 1.0)
        counts.append(len(one.outgoing(own).messages[0][1].tensors[0]))
        assert 8 * sum(counts) <= budget * (iteration + 1)
    assert counts == [each] * 30
