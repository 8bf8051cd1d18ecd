"""AD-PSGD: averages with one peer, keeps the mean, waits for no computation."""

import pytest
import torch

from dlion_sim.protocol.events import GradientReady, MessageArrived, Send, Started
from dlion_sim.protocol.messages import Message, Swap
from tests.protocol.joined import run, setup, workers_of

RING = {0: {1: 1 / 3, 3: 1 / 3}, 1: {0: 1 / 3, 2: 1 / 3}, 2: {1: 1 / 3, 3: 1 / 3}, 3: {2: 1 / 3, 0: 1 / 3}}


def one(worker=0, value=0.0):
    (made,) = workers_of({"name": "adpsgd"}, [setup(worker, 4, mixing=RING[worker])])
    made.replica.parameters.fill_(value)
    made.handle(Started(), 0.0)
    return made


def full(value):
    return torch.full((6,), value)


def test_both_sides_move_to_the_middle_and_the_gradient_is_taken_whole():
    worker = one(value=2.0)
    (offer,) = worker.handle(GradientReady(1.0, full(1.0), 1.0), 1.0)
    assert offer.peer in (1, 3)
    assert torch.equal(offer.message.tensors[0], full(2.0))
    assert worker.iteration == 0, "it waits for the answer"
    worker.handle(MessageArrived(Message(offer.peer, Swap(True), (full(6.0),))), 2.0)
    assert worker.iteration == 1
    torch.testing.assert_close(worker.replica.parameters, full(4.0 - 0.1))


def test_who_is_asked_answers_at_once_and_moves_at_its_iterations_end():
    worker = one(value=6.0)
    (answer,) = worker.handle(MessageArrived(Message(1, Swap(False), (full(2.0),))), 0.5)
    assert (answer.peer, answer.message.body.answer) == (1, True)
    assert torch.equal(answer.message.tensors[0], full(6.0))
    assert torch.equal(worker.replica.parameters, full(6.0)), "its gradient is being computed on these"
    (offer,) = worker.handle(GradientReady(1.0, full(0.0), 1.0), 1.0)
    assert torch.equal(offer.message.tensors[0], full(4.0)), "what it offers has moved"
    worker.handle(MessageArrived(Message(offer.peer, Swap(True), (full(4.0),))), 2.0)
    torch.testing.assert_close(worker.replica.parameters, full(4.0))


@pytest.mark.parametrize("iterations", [1, 12])
def test_the_mean_moves_by_gradients_only(iterations):
    """Once everyone has ended the same number of iterations, the mean is where plain steps have led it."""
    workers = workers_of({"name": "adpsgd"}, [setup(i, 4, mixing=RING[i], iterations=iterations) for i in range(4)])
    for index, worker in enumerate(workers):
        worker.replica.parameters.fill_(float(index))

    def gradient(worker, iteration):
        return torch.randn(6, generator=torch.Generator().manual_seed(1000 * worker + iteration))

    run(workers, lambda worker, size: (1.0, gradient(worker.setup.worker, worker.iteration)))
    moves = sum(worker.choices.exchange._move for worker in workers)  # agreed upon in the last iteration
    mean = (sum(worker.replica.parameters for worker in workers) + moves) / 4
    expected = full(1.5) - 0.1 * sum(gradient(w, k) for w in range(4) for k in range(iterations)) / 4
    torch.testing.assert_close(mean, expected, atol=1e-5, rtol=1e-5)


def test_a_worker_asked_many_times_in_one_iteration_does_not_overshoot():
    worker = one(value=0.0)
    answers = [
        worker.handle(MessageArrived(Message(1, Swap(False), (full(8.0),))), 0.5)[0].message.tensors[0]
        for _ in range(3)
    ]
    assert [float(answer[0]) for answer in answers] == [0.0, 4.0, 6.0]


def test_only_neighbours_are_asked():
    worker = one(worker=2)
    asked = set()
    for turn in range(20):
        (offer,) = [a for a in worker.handle(GradientReady(1.0, full(0.0), 1.0), turn) if isinstance(a, Send)]
        asked.add(offer.peer)
        worker.handle(MessageArrived(Message(offer.peer, Swap(True), (full(0.0),))), turn)
    assert asked == {1, 3}
