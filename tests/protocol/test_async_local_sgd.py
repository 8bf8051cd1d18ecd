"""Asynchronous local SGD: a short program of the definition, plain local training, and steps that follow speeds."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.events import GradientReady, MessageArrived, PeerLost, Started
from dlion_sim.protocol.exchange.async_local_sgd import Merged, PseudoGradient
from dlion_sim.protocol.exchange.parameter_server import Pulled
from dlion_sim.protocol.exchange.partitions import by_bytes
from dlion_sim.protocol.messages import MalformedMessageError, Message, decode
from dlion_sim.protocol.server import ParameterServer
from tests.protocol.churn import World
from tests.protocol.churn import noise as world_noise
from tests.protocol.joined import noise, noisy, random_delays, run, servers_of, team

RATE, P = 0.1, 6


def system(hosts=1, **parameters):
    topology = {"kind": "parameter_server", "hosts": [{"cloud": "a"}] * hosts}
    return {"name": "async_local_sgd", "exchange": parameters, "topology": topology}


class Noting(ParameterServer):
    """A server that notes pseudo-gradients, and its parameters after each."""

    def handle(self, event, now):
        actions = super().handle(event, now)
        if isinstance(event, MessageArrived):
            self.noted.append((event.message, self.replica.parameters.numpy().copy()))
        return actions


def served(spec, count, **keys):
    """Workers and servers of a system."""
    servers = servers_of(spec, count, Noting)
    for server in servers:
        server.noted = []
    return team(spec, count, **keys), servers


@given(
    count=st.integers(1, 4),
    hosts=st.integers(1, 3),
    period=st.integers(1, 4),
    every=st.sampled_from([None, 1, 3]),
    precision=st.sampled_from(["fp32", "fp16"]),
    seed=st.integers(0, 5),
)
def test_it_does_what_the_definition_says(count, hosts, period, every, precision, seed):
    """Given the order in which pseudo-gradients reach each server."""
    outer = {"outer_learning_rate": 0.8, "outer_momentum": 0.6, "momentum_every": every}
    spec = system(hosts, period=period, dynamic=False, precision=precision, **outer)
    workers, servers = served(spec, count, iterations=12)
    run(workers, noisy, servers=servers, delays=random_delays(seed, unequal=True))
    n, ends = every or count, np.zeros((count, P))
    atol = 1e-5 if precision == "fp32" else 5e-3
    sent = [[message.body.iteration for message, _ in server.noted] for server in servers]
    assert sent[0], "pseudo-gradients have arrived"
    assert all(sorted(each) == sorted(sent[0]) for each in sent)
    for server, (begin, end) in zip(servers, by_bytes(P, hosts), strict=True):
        theta, m, last = np.zeros(end - begin), np.zeros(end - begin), []
        for message, found in server.noted:
            worker, iteration = message.sender, message.body.iteration
            assert (iteration + 1) % period == 0
            steps = [noise(worker, each)[begin:end].numpy() for each in range(iteration + 1 - period, iteration + 1)]
            moved = RATE * np.sum(steps, axis=0)
            last.append(moved)
            if len(last) % n == 0:
                m = 0.6 * m + np.sum(last[-n:], axis=0) / n
                theta = theta - 0.8 * (0.6 * m + moved / n)
            else:
                theta = theta - 0.8 * moved / n
            np.testing.assert_allclose(found, theta, atol=atol)
            ends[worker, begin:end] = theta
    for worker in range(count):
        rest = [noise(worker, each).numpy() for each in range(12 - 12 % period, 12)]
        ends[worker] -= RATE * np.sum(rest, axis=0)
    np.testing.assert_allclose([worker.replica.parameters.numpy() for worker in workers], ends, atol=atol)


@pytest.mark.parametrize("hosts", [1, 2])
def test_one_worker_whose_pseudo_gradient_counts_whole_trains_alone(hosts):
    workers, servers = served(system(hosts, period=3, outer_learning_rate=1.0, outer_momentum=0.0), 1, iterations=10)
    run(workers, noisy, servers=servers)
    alone = -RATE * sum(noise(0, iteration) for iteration in range(10))
    torch.testing.assert_close(workers[0].replica.parameters, alone)
    assert len(servers[0].noted) == 3


@pytest.mark.parametrize(
    ("dynamic", "expected"), [(True, {0: 10, 1: 5, 2: 3, 3: 1}), (False, dict.fromkeys(range(4), 10))]
)
def test_steps_follow_speeds(dynamic, expected):
    """Workers of 1, 2, 4 and 30 s a step."""
    spec = system(2, period=10, dynamic=dynamic)
    workers, servers = served(spec, 4, iterations=60)
    seconds = (1.0, 2.0, 4.0, 30.0)
    run(
        workers,
        noisy,
        lambda worker, batch_size: seconds[worker.setup.worker],
        servers=servers,
        delays=lambda participant: seconds[participant] if participant < 4 else 0.0,
    )
    for worker, steps in expected.items():
        ends = [message.body.iteration + 1 for message, _ in servers[0].noted if message.sender == worker]
        assert ends[0] == 10
        assert {*np.diff(ends[1 if worker else 0 :])} == {steps}, "all begin with the same number"


def test_a_worker_that_has_left_no_longer_holds_others_back():
    (server,) = served(system(), 3)[1]
    for sender, step in ((0, 1.0), (1, 4.0)):
        server.handle(moved(sender, step), 0.0)
    assert answer(server, moved(1, 4.0, iteration=2)) == 1.0
    server.handle(PeerLost(0), 0.0)
    assert answer(server, moved(1, 4.0, iteration=3)) == 4.0


def moved(sender, step=1.0, iteration=1, tensors=None, offset=0):
    return MessageArrived(Message(sender, PseudoGradient(iteration, 8, offset, step), tensors or (torch.ones(P),)))


def answer(server, event):
    (send,) = server.handle(event, 0.0)
    return send.message.body.fastest


@pytest.mark.parametrize("step", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("body", [lambda step: PseudoGradient(0, 8, 0, step), lambda step: Merged(0, 8, fastest=step)])
def test_durations_are_finite_and_positive(step, body):
    with pytest.raises(MalformedMessageError):
        decode(Message(1, body(step), (torch.ones(P),)).encode(), workers=2, parameters=P)
    decode(Message(1, body(1.0), (torch.ones(P),)).encode(), workers=2, parameters=P)


@pytest.mark.parametrize(
    "message",
    [
        Message(2, Merged(1, 8, fastest=1.0), (torch.ones(P),)),
        Message(2, Merged(0, 8, fastest=1.0), (torch.ones(3),)),
        Message(2, Merged(0, 8, offset=2, fastest=1.0), (torch.ones(4),)),
        Message(2, Pulled(0, 8), (torch.ones(P),)),
    ],
    ids=["another iteration", "too few", "another offset", "no duration"],
)
def test_a_worker_refuses_what_answers_no_pseudo_gradient(message):
    worker = team(system(period=1), 2)[0]
    good = MessageArrived(Message(2, Merged(0, 8, fastest=1.0), (torch.ones(P),)))
    worker.handle(Started(), 0.0)
    with pytest.raises(MalformedMessageError, match="an answer to no pseudo-gradient"):
        worker.handle(good, 0.0)
    worker.handle(GradientReady(1.0, torch.ones(P), 1.0), 1.0)
    with pytest.raises(MalformedMessageError):
        worker.handle(MessageArrived(message), 2.0)
    worker.handle(good, 3.0)
    assert worker.iteration == 1
    assert torch.equal(worker.replica.parameters, torch.ones(P))
    with pytest.raises(MalformedMessageError, match="an answer to no pseudo-gradient"):
        worker.handle(good, 4.0)


def test_a_worker_that_returns_continues_the_schedule_of_learning_rates():
    def decay(step):
        return 1 / (1 + step)

    world = World(system(2, period=2), 3, world_noise, iterations=30, on_loss="go_on", optimizer={"decay": decay})
    world.happen(8, world.crash, 2)
    world.happen(10, world.come, 2)
    world.run()
    assert world.log(2).joined.iteration > 0
    assert [each.replica.decay for each in world.present] == [decay(each.iteration) for each in world.present]
