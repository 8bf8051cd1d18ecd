"""Top-k, random-k and deep gradient compression: what they choose, and that nothing is lost."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.exchange.compressed import DeepGradientCompression, RandomKExchange, TopKExchange
from dlion_sim.protocol.updates import Incoming, LocalGradient
from tests.protocol.flushing import flushed
from tests.protocol.joined import setup

vectors = st.lists(st.floats(-10, 10, width=32), min_size=20, max_size=20).map(torch.tensor)


def outgoing(one, gradient, iteration=0):
    result = one.outgoing(LocalGradient(iteration, 32, gradient, seconds=1.0, factor=1 / 3, time=0.0))
    message = result.messages[0][1]
    assert all(torch.equal(a, b) for a, b in zip(result.own.tensors, message.tensors, strict=True))
    update = torch.zeros(20)
    update[message.tensors[0].long()] = message.tensors[1]
    return update, message.tensors[0].tolist()


@pytest.mark.parametrize("kind", [TopKExchange, RandomKExchange])
@given(st.lists(vectors, min_size=1, max_size=8), st.floats(0.01, 1))
def test_sent_entries_and_residual_sum_to_all_gradients(kind, gradients, density):
    one = kind(kind.Parameters(density=density), setup(variables=(7, 12, 1)))
    remembered, received = torch.zeros(20), torch.zeros(20)
    for iteration, gradient in enumerate(gradients):
        remembered += gradient
        count = max(1, round(density * 20))
        if kind is TopKExchange:  # zeros are not worth sending
            count = min(count, int(remembered.count_nonzero()))
        update, indices = outgoing(one, gradient, iteration)
        received += update
        assert len(set(indices)) == len(indices) == count
        assert torch.equal(update[indices], remembered[indices])
        remembered[indices] = 0
    torch.testing.assert_close(received + flushed(one)[1], torch.stack(gradients).sum(dim=0))


@given(vectors)
def test_top_k_takes_the_largest(gradient):
    one = TopKExchange(TopKExchange.Parameters(density=0.25), setup(variables=(20,)))
    _, indices = outgoing(one, gradient)
    rest = [index for index in range(20) if index not in indices]
    assert len(indices) == min(5, int(gradient.count_nonzero()))
    assert not indices or gradient[indices].abs().min() >= gradient[rest].abs().max()


def test_with_adam_the_largest_of_own_steps_are_sent_and_added_up():
    """Against torch's Adam at each worker, whose steps are compressed by hand."""
    workers = [TopKExchange(TopKExchange.Parameters(density=0.2), setup(w, optimizer="adam")) for w in range(3)]
    own = [torch.nn.Parameter(torch.zeros(6)) for _ in workers]
    adams = [torch.optim.Adam([each], lr=0.1) for each in own]
    parameters, residuals = torch.zeros(6), [torch.zeros(6) for _ in workers]
    generator = torch.Generator().manual_seed(0)
    for iteration in range(12):
        gradients = torch.randn(3, 6, generator=generator)
        results = [
            one.outgoing(LocalGradient(iteration, 32, gradient, seconds=1.0, factor=1 / 3, time=0.0))
            for one, gradient in zip(workers, gradients, strict=True)
        ]
        assert torch.equal(workers[0].setup.replica.parameters, parameters)
        for me, one in enumerate(workers):
            received = [results[peer].own for peer in range(3) if peer != me]
            one.apply(Incoming(iteration, results[me].own, received, lambda _: 1 / 3, one.setup.peers))
        moved = torch.zeros(6)
        for mine, adam, gradient, residual in zip(own, adams, gradients, residuals, strict=True):
            mine.data.copy_(parameters)
            mine.grad = gradient.clone()
            adam.step()
            residual += mine.detach() - parameters
            top = residual.abs().topk(1).indices
            moved[top] += residual[top] / 3
            residual[top] = 0
        expected, parameters = parameters + moved, workers[0].setup.replica.snapshot()
        assert all(torch.equal(one.setup.replica.parameters, parameters) for one in workers)
        torch.testing.assert_close(parameters, expected)


def test_random_k_differs_by_worker_and_is_deterministic():
    def chosen(worker):
        one = RandomKExchange(RandomKExchange.Parameters(density=0.25), setup(worker, variables=(20,)))
        return [outgoing(one, torch.ones(20), iteration)[1] for iteration in range(4)]

    assert chosen(0) == chosen(0) != chosen(1)


def test_dgc_sends_accumulated_momentum_and_clears_it_where_sent():
    """Against the rule written out: u <- m u + g, v <- v + u, top-k of v, both cleared there."""
    parameters = DeepGradientCompression.Parameters(density=0.1, warmup=[], momentum=0.5)
    one = DeepGradientCompression(parameters, setup(variables=(20,)))
    generator = torch.Generator().manual_seed(1)
    u, v = torch.zeros(20), torch.zeros(20)
    for iteration in range(10):
        gradient = torch.randn(20, generator=generator)
        u = 0.5 * u + gradient
        v = v + u
        expected = torch.zeros(20)
        top = v.abs().topk(2).indices
        expected[top] = v[top]
        update, _ = outgoing(one, gradient, iteration)
        torch.testing.assert_close(update, expected)
        u[top] = v[top] = 0


def test_dgc_warms_up_by_epochs():
    one = DeepGradientCompression(DeepGradientCompression.Parameters(density=0.05), setup(variables=(20,), samples=960))
    sizes = [len(outgoing(one, torch.randn(20), iteration)[1]) for iteration in range(50)]
    assert [sizes[0], sizes[10], sizes[49]] == [5, 1, 1]


def test_dgc_clips_to_each_workers_part_of_the_norm():
    one = DeepGradientCompression(
        DeepGradientCompression.Parameters(density=1, warmup=[], clip_norm=3.0), setup(workers=9, variables=(20,))
    )
    update, _ = outgoing(one, torch.full((20,), 5.0))
    assert update.norm() == pytest.approx(1.0)
