"""Ring all-reduce: Baseline's mean, the same to the bit everywhere, at the traffic that it promises."""

import pytest
import torch

from dlion_sim.protocol.events import Send
from tests.protocol.joined import run, setup, workers_of


def gradient(worker, iteration):
    return torch.randn(6, generator=torch.Generator().manual_seed(1000 * worker + iteration))


def trained(system, count, iterations=5):
    workers = workers_of(system, [setup(index, count, iterations=iterations) for index in range(count)])
    sent = [0] * count

    def counting(worker, handle):
        def handled(event, now):
            actions = handle(event, now)
            sent[worker] += sum(a.message.tensors[0].numel() for a in actions if isinstance(a, Send))
            return actions

        return handled

    for index, worker in enumerate(workers):
        worker.handle = counting(index, worker.handle)
    run(workers, lambda worker, size: (1.0, gradient(worker.setup.worker, worker.iteration)))
    return [worker.replica.parameters for worker in workers], sent


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_it_is_baseline(count):
    ring, _ = trained({"name": "ring_allreduce"}, count)
    baseline, _ = trained({"name": "baseline"}, count)
    torch.testing.assert_close(ring[0], baseline[0])
    assert all(torch.equal(ring[0], one) for one in ring)


@pytest.mark.parametrize("count", [2, 3, 6])
def test_each_worker_sends_two_gradients_less_two_nths(count):
    _, sent = trained({"name": "ring_allreduce"}, count, iterations=4)
    assert sent == [4 * 2 * (count - 1) * 6 // count] * count
