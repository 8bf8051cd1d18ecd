"""AD-PSGD: averages with one peer, keeps the mean, brings workers together, waits for no computation."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.events import (
    GradientReady,
    MessageArrived,
    Report,
    Send,
    Started,
)
from dlion_sim.protocol.exchange.pairwise import Swap
from dlion_sim.protocol.messages import Message
from tests.protocol.joined import noise, noisy, random_delays, run, setup, workers_of

RING = {0: {1: 1 / 3, 3: 1 / 3}, 1: {0: 1 / 3, 2: 1 / 3}, 2: {1: 1 / 3, 3: 1 / 3}, 3: {2: 1 / 3, 0: 1 / 3}}
PAIR = {0: {1: 0.5}, 1: {0: 0.5}}


def joined(graph, values, iterations=None):
    setups = [
        setup(i, len(graph), mixing=dict(graph[i]), side=i % 2, iterations=iterations, learning_rate=1.0) for i in graph
    ]
    workers = workers_of({"name": "adpsgd"}, setups)
    for worker, value in zip(workers, values, strict=True):
        worker.replica.parameters.fill_(value)
    return workers


def one(side, value):
    """A worker of the ring that has begun, and what it asked for."""
    worker = joined(RING, [value] * 4)[side]
    return worker, worker.handle(Started(), 0.0)


def full(value):
    return torch.full((6,), float(value))


def still(worker, batch_size):
    return 1.0, torch.zeros(6)


def spread(workers):
    """The greatest difference between two workers' parameters."""
    parameters = torch.stack([worker.replica.parameters for worker in workers])
    return float((parameters.max(dim=0).values - parameters.min(dim=0).values).max())


@given(st.integers(0, 2**31), st.sampled_from([PAIR, RING]), st.integers(1, 12))
def test_without_gradients_the_mean_stays_and_disagreement_shrinks_under_any_delays(seed, graph, iterations):
    values = [random.Random(seed).uniform(-5, 5) for _ in graph]
    workers = joined(graph, values, iterations)
    deviations = [sum((value - sum(values) / len(values)) ** 2 for value in values)]
    run(workers, still, delays=random_delays(seed))
    after = [float(worker.replica.parameters[0]) for worker in workers]
    assert sum(after) == pytest.approx(sum(values), abs=1e-4)
    deviations.append(sum((value - sum(after) / len(after)) ** 2 for value in after))
    if graph is PAIR:  # one average brings two workers together for good
        assert spread(workers) == pytest.approx(0, abs=1e-5)
    assert deviations[1] <= deviations[0] * (1 + 1e-5)


def test_without_gradients_disagreement_vanishes():
    for seed in range(6):
        workers = joined(RING, [0.0, 1.0, 2.0, 3.0], iterations=60)
        run(workers, still, delays=random_delays(seed))
        assert spread(workers) < 1e-3
        assert float(workers[0].replica.parameters[0]) == pytest.approx(1.5, abs=1e-3)


def test_gradients_move_the_mean_as_plain_steps_would():
    workers = joined(RING, [0.0, 1.0, 2.0, 3.0], iterations=12)
    expected = full(1.5)
    for worker in range(4):
        for iteration in range(12):
            expected -= noise(worker, iteration) / 4
    run(workers, noisy, delays=random_delays(3))
    mean = sum(worker.replica.parameters for worker in workers) / 4
    torch.testing.assert_close(mean, expected, atol=1e-5, rtol=1e-5)


def test_on_a_quadratic_two_workers_in_step_converge():
    """The case in which workers that ask each other at once would move apart: d <- -(1 + rate * H) d."""
    workers = joined(PAIR, [1.0, -3.0], iterations=80)
    run(workers, lambda worker, _: (1.0, 0.3 * (worker.replica.parameters - 2.0)), delays=random_delays(0))
    assert spread(workers) < 0.01
    torch.testing.assert_close(workers[0].replica.parameters, full(2.0), atol=0.01, rtol=0)


def test_an_active_worker_asks_as_its_iteration_begins_and_ends_it_with_the_answer():
    worker, (question, _) = one(side=0, value=2.0)
    assert question.peer in (1, 3)
    assert torch.equal(question.message.tensors[0], full(2.0))
    assert worker.handle(GradientReady(1.0, full(1.0), 1.0), 1.0) == []
    actions = worker.handle(MessageArrived(Message(question.peer, Swap(True), (full(6.0),))), 2.0)
    assert torch.equal(worker.replica.parameters, full(4.0 - 1.0))
    (report,) = [action for action in actions if isinstance(action, Report)]
    assert (report.iteration, report.applied) == (1, 1)
    (second,) = [action for action in actions if isinstance(action, Send)]
    assert torch.equal(second.message.tensors[0], full(3.0))


def test_a_passive_worker_answers_at_once_and_averages_at_its_iterations_end():
    worker, actions = one(side=1, value=6.0)
    assert not [action for action in actions if isinstance(action, Send)], "it never asks"
    (answer,) = worker.handle(MessageArrived(Message(0, Swap(False), (full(2.0),))), 0.5)
    assert (answer.peer, answer.message.body.answer) == (0, True)
    assert torch.equal(answer.message.tensors[0], full(6.0))
    assert torch.equal(worker.replica.parameters, full(6.0)), "its gradient is being computed on these"
    (second,) = worker.handle(MessageArrived(Message(2, Swap(False), (full(8.0),))), 0.6)
    assert torch.equal(second.message.tensors[0], full(4.0)), "what it answers has moved"
    (report, _) = worker.handle(GradientReady(1.0, full(1.0), 1.0), 1.0)
    assert torch.equal(worker.replica.parameters, full(6.0 - 1.0))
    assert report.applied == 2
