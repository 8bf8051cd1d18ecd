"""Local SGD and DiLoCo against their rules written out."""

import numpy as np
import torch

from dlion_sim.protocol.events import GradientReady, MessageArrived, Started
from dlion_sim.protocol.exchange.periodic import LocalSgdExchange
from dlion_sim.protocol.messages import Message, Mixed
from dlion_sim.protocol.updates import LocalGradient
from tests.protocol.joined import run, setup, workers_of

WORKERS = 3


def gradient(worker, iteration):
    return torch.randn(6, generator=torch.Generator().manual_seed(1000 * worker + iteration))


def trained(system, iterations):
    workers = workers_of(system, [setup(index, WORKERS, iterations=iterations) for index in range(WORKERS)])
    run(workers, lambda worker, size: (1.0, gradient(worker.setup.worker, worker.iteration)))
    return np.stack([worker.replica.parameters.numpy() for worker in workers])


def local_steps(x, iterations):
    return x - 0.1 * np.stack([sum(gradient(w, k) for k in iterations).numpy() for w in range(WORKERS)])


def test_local_sgd_steps_alone_and_averages_every_period():
    found = trained({"name": "local_sgd", "exchange": {"period": 4}}, iterations=10)
    x = np.zeros((WORKERS, 6))
    for period in (range(4), range(4, 8)):
        x = np.tile(local_steps(x, period).mean(axis=0), (WORKERS, 1))
    np.testing.assert_allclose(found, local_steps(x, range(8, 10)), atol=1e-5)


def test_a_period_of_one_is_baseline():
    found = trained({"name": "local_sgd", "exchange": {"period": 1}}, iterations=6)
    np.testing.assert_allclose(found, trained({"name": "baseline"}, iterations=6), atol=1e-6)


def test_parameters_that_come_late_count_in_the_next_exchange():
    system = {
        "name": "local_sgd",
        "exchange": {"period": 2},
        "synchronization": {"kind": "bounded_staleness", "staleness": 1},
    }
    (worker,) = workers_of(system, [setup(workers=3)])

    def arrives(sender, tag, value):
        worker.handle(MessageArrived(Message(sender, Mixed(tag, 32), (torch.full((6,), value),))), 0.0)

    def iterate(parameters):
        worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 0.0)
        assert worker.replica.parameters.tolist() == [parameters] * 6

    worker.handle(Started(), 0.0)
    iterate(0.0)
    arrives(1, 1, 8.0)
    iterate(4.0)  # with 1; 2 is late
    arrives(2, 1, 100.0)
    iterate(4.0)
    arrives(2, 3, 6.0)
    iterate(5.0)  # with the newest of 2; 1 is late
    arrives(1, 3, 7.0)
    iterate(5.0)
    arrives(2, 5, 0.0)
    iterate(4.0)


def test_diloco_takes_nesterov_steps_along_the_mean_movement():
    system = {"name": "diloco", "exchange": {"period": 3, "outer_learning_rate": 0.5, "outer_momentum": 0.8}}
    found = trained(system, iterations=9)
    start, velocity = np.zeros(6), np.zeros(6)
    for period in (range(3), range(3, 6), range(6, 9)):
        movement = start - local_steps(np.tile(start, (WORKERS, 1)), period).mean(axis=0)
        velocity = 0.8 * velocity + movement
        start = start - 0.5 * (movement + 0.8 * velocity)
    np.testing.assert_allclose(found, np.tile(start, (WORKERS, 1)), atol=1e-5)


def test_an_outer_rate_of_one_without_momentum_is_local_sgd():
    plain = {"name": "diloco", "exchange": {"period": 3, "outer_learning_rate": 1.0, "outer_momentum": 0.0}}
    found = trained(plain, iterations=7)
    np.testing.assert_allclose(found, trained({"name": "local_sgd", "exchange": {"period": 3}}, 7), atol=1e-6)


def test_messages_go_out_once_a_period():
    one = LocalSgdExchange(LocalSgdExchange.Parameters(period=5), setup())
    sent = [one.outgoing(LocalGradient(tag, 32, torch.ones(6), 1.0, 1.0, 0.0)).messages for tag in range(12)]
    assert [tag for tag, messages in enumerate(sent) if messages] == [4, 9]
    assert [one.covers(tag) for tag in (-1, 4, 9)] == [3, 8, 13]
