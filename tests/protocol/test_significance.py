"""Gaia (oracle 4): what is sent and what is kept sum to all updates; the limits of the threshold."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.events import GradientReady, MessageArrived, Started
from dlion_sim.protocol.exchange.significance import Announcement, SignificanceExchange
from dlion_sim.protocol.messages import Channel, Contribution, Message
from dlion_sim.protocol.updates import LocalGradient
from tests.protocol.flushing import flushed
from tests.protocol.joined import setup, workers_of

vectors = st.lists(st.floats(-10, 10, width=32), min_size=20, max_size=20).map(torch.tensor)


def exchange(weights=None, **parameters):
    own = setup(variables=(7, 12, 1), learning_rate=0.5)
    if weights is not None:
        own.replica.parameters.copy_(weights)
    return SignificanceExchange(SignificanceExchange.Parameters(**parameters), own)


def sent(one, gradient, iteration=0):
    outgoing = one.outgoing(LocalGradient(iteration, 32, gradient, seconds=1.0, factor=1 / 3, time=0.0))
    update = torch.zeros(20)
    message = outgoing.messages[0][1]
    match message.tensors:
        case (values,):
            update += values
        case (indices, values):
            update[indices.long()] = values
    return update, message


@given(vectors, st.lists(vectors, min_size=1, max_size=8), st.floats(0, 2))
def test_sent_updates_and_residual_sum_to_all_updates(weights, gradients, threshold):
    one = exchange(weights, threshold=threshold)
    received = sum(sent(one, gradient, iteration)[0] for iteration, gradient in enumerate(gradients))
    torch.testing.assert_close(received + flushed(one)[1], torch.stack(gradients).sum(dim=0))


def test_an_entry_is_sent_when_its_residual_is_large_against_its_weight():
    weights = torch.full((20,), 10.0)
    one = exchange(weights, threshold=0.1, schedule="constant")
    gradient = torch.zeros(20)
    gradient[4] = 4.0  # an update of 4 * 0.5 / 3 = 0.67, of 10: not yet
    assert sent(one, gradient)[0].tolist() == [0.0] * 20
    update, message = sent(one, gradient, 1)  # 1.33 accumulated
    assert update[4] == 8.0
    assert message.tensors[0].tolist() == [4]


def test_the_threshold_falls_with_the_square_root_of_the_iteration():
    weights = torch.full((20,), 10.0)
    gradient = torch.zeros(20)
    gradient[4] = 4.0
    assert not sent(exchange(weights, threshold=0.1), gradient, 0)[0].any()
    assert sent(exchange(weights, threshold=0.1), gradient, 3)[0].any()  # 0.05 * 10 < 0.67


def test_the_threshold_may_follow_the_learning_rate():
    own = setup(variables=(20,), learning_rate=0.5, decay=lambda step: 1.0 if step < 1 else 0.1)
    own.replica.parameters.fill_(10.0)
    one = SignificanceExchange(SignificanceExchange.Parameters(threshold=0.1, schedule="learning_rate"), own)
    gradient = torch.zeros(20)
    gradient[4] = 4.0
    assert not sent(one, gradient)[0].any()  # an update of 0.5 * 4 / 3 = 0.67, against 0.1 * 10
    own.replica.step(torch.zeros(20))
    assert sent(one, gradient)[0][4] == 8.0  # 0.05 * 8 / 3 = 0.13, against 0.01 * 10


def test_an_infinite_threshold_sends_only_where_the_weight_is_zero():
    weights = torch.ones(20)
    weights[2] = 0.0
    gradient = torch.zeros(20)
    gradient[5] = 1.0
    update, message = sent(exchange(weights, threshold=1e38, schedule="constant"), gradient)
    assert not update.any()
    assert message.size < 100, "a clock"


def test_many_significant_entries_are_sent_as_a_whole_gradient():
    update, message = sent(exchange(torch.ones(20), threshold=0.0), torch.ones(20))
    assert len(message.tensors) == 1
    assert torch.equal(update, torch.ones(20))


def test_the_selective_barrier_announces_updates_on_busy_links():
    weights = torch.ones(20)
    one = exchange(weights, threshold=0.01, barrier="selective")
    gradient = torch.zeros(20)
    gradient[4] = 4.0
    one.setup.links.queued(1, 1000, 0.0)
    messages = one.outgoing(LocalGradient(3, 32, gradient, seconds=1.0, factor=1 / 3, time=0.0)).messages
    announced = [
        (peer, message.tensors[0].tolist()) for peer, message in messages if isinstance(message.body, Announcement)
    ]
    assert announced == [(1, [4])], "peer 2's link is free"
    assert Announcement.channel is Channel.CONTROL, "it does not wait in the busy link's queue"
    assert [peer for peer, message in messages if isinstance(message.body, Contribution)] == [1, 2]


def test_a_worker_waits_for_announced_updates():
    system = {"name": "gaia", "exchange": {"barrier": "selective"}, "synchronization": "asynchronous"}
    (worker,) = workers_of(system, [setup()])
    worker.handle(Started(), 0.0)
    indices = torch.tensor([1, 3], dtype=torch.int32)
    worker.handle(MessageArrived(Message(1, Announcement(5), (indices,))), 0.5)
    worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 1.0)
    assert worker.iteration == 0
    worker.handle(MessageArrived(Message(1, Contribution(4, 32), (indices, torch.zeros(2)))), 2.0)
    assert worker.iteration == 0
    worker.handle(MessageArrived(Message(1, Contribution(5, 32), (indices, torch.zeros(2)))), 3.0)
    assert worker.iteration == 1
