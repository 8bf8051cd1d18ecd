"""Federated averaging: a short program of the definition, who rests, and rounds that lose workers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.errors import InputError
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.events import (
    GradientReady,
    Leave,
    MessageArrived,
    PeerFound,
    PeerLost,
    Send,
    Started,
)
from dlion_sim.protocol.exchange.fedavg import Invitation, RoundPseudoGradient
from dlion_sim.protocol.membership_messages import Hello, Leaving
from dlion_sim.protocol.messages import MalformedMessageError, Message, decode
from dlion_sim.protocol.phases import Phase
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.scenario import SystemSpec
from tests.protocol.churn import World
from tests.protocol.churn import noise as world_noise
from tests.protocol.joined import noise, noisy, random_delays, run, servers_of, team, workers_of

RATE, P, BATCH = 0.1, 6, 8


def system(**parameters):
    return {"name": "fedavg", "exchange": parameters}


class Noting(ParameterServer):
    """A server that notes each round's cohort, pseudo-gradients, and parameters afterwards."""

    def handle(self, event, now):
        if not hasattr(self, "rounds"):
            self.rounds = []
        if isinstance(event, MessageArrived):
            self.rounds[-1][1].append(event.message)
        actions = super().handle(event, now)
        if invited := [action.peer for action in actions if isinstance(action, Send)]:
            self.rounds.append((invited, [], self.replica.parameters.numpy().copy()))
        return actions


def served(spec, count, samples, **keys):
    """Workers with so many samples each in their shards, and their server."""
    (server,) = servers_of(spec, count, Noting)
    setups = [
        replace(worker.setup, shard_samples=each)
        for worker, each in zip(team(spec, count, batch_size=BATCH, **keys), samples, strict=True)
    ]
    return workers_of(spec, setups), server


@given(
    samples=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    participation=st.sampled_from([0.1, 0.5, 1.0]),
    epochs=st.sampled_from([0.3, 1.0, 2.0]),
    precision=st.sampled_from(["fp32", "fp16"]),
    seed=st.integers(0, 5),
)
def test_it_does_what_the_definition_says(samples, participation, epochs, precision, seed):
    """Whatever the delays: given the cohorts, each worker's steps, and their numbers, follow."""
    count = len(samples)
    outer = {"outer_learning_rate": 0.8, "outer_momentum": 0.6}
    spec = system(participation=participation, epochs=epochs, precision=precision, **outer)
    workers, server = served(spec, count, samples)
    run(workers, noisy, servers=[server], delays=random_delays(seed, unequal=True), most=600)
    assert len(server.rounds) > 2
    theta, m, done = np.zeros(P), np.zeros(P), [0] * count
    for (cohort, _, before), (_, _, after) in zip(server.rounds, server.rounds[1:], strict=False):
        assert len({*cohort}) == len(cohort) == max(1, round(participation * count))
        np.testing.assert_allclose(before, theta, atol=1e-5 if precision == "fp32" else 5e-3)
        weighted, total = np.zeros(P), 0
        for worker in cohort:
            steps = -(-max(1, int(np.ceil(epochs * samples[worker]))) // BATCH)
            own = [noise(worker, each).numpy() for each in range(done[worker], done[worker] + steps)]
            done[worker] += steps
            weighted += steps * BATCH * RATE * np.sum(own, axis=0)
            total += steps * BATCH
        m = 0.6 * m + weighted / total
        theta = theta - 0.8 * m
        np.testing.assert_allclose(after, theta, atol=1e-5 if precision == "fp32" else 5e-3)


def test_with_all_workers_and_equal_shards_it_is_local_sgd():
    """The mean of pseudo-gradients from the same parameters is the pseudo-gradient of the mean."""
    workers, server = served(system(participation=1.0), 3, [4 * BATCH] * 3)
    run(workers, noisy, servers=[server], delays=random_delays(1), most=400)
    local = team({"name": "local_sgd", "exchange": {"period": 4}}, 3, batch_size=BATCH, iterations=8)
    run(local, noisy)
    torch.testing.assert_close(torch.from_numpy(server.rounds[2][2]), local[0].replica.parameters)


def test_cohorts_are_drawn_evenly_and_differ_by_seed():
    """Each of ten is in about a third of the rounds."""
    drawn = []
    for seed in (0, 0, 1):
        (server,) = servers_of(system(participation=0.3), 10, Noting)
        rule = compose(SystemSpec.model_validate(system(participation=0.3))).choices["exchange"].parameters.rule
        rounds = rule(server.replica, 10, seed)
        drawn.append([[to for to, _ in rounds.answers((), each, range(10))] for each in range(400)])
    assert drawn[0] == drawn[1] != drawn[2]
    counts = np.bincount(np.concatenate(drawn[0]), minlength=10)
    assert np.all(np.abs(counts - 120) < 5 * np.sqrt(400 * 0.3 * 0.7))


def test_a_worker_that_is_not_invited_computes_nothing():
    spec = system(participation=0.1)
    workers, server = served(spec, 5, [24] * 5)
    computed = []

    def noted(worker, batch_size):
        computed.append(worker.setup.worker)
        return noisy(worker, batch_size)

    run(workers, noted, servers=[server], most=120)
    assert {*computed} == {each for cohort, _, _ in server.rounds for each in cohort}
    assert computed[:3] == server.rounds[0][0] * 3


def test_resting_workers_share_their_parameters_and_keep_no_moments():
    (worker, *_), _ = served(system(), 2, [BATCH, BATCH], optimizer="adam")
    initial = worker.replica.parameters.data_ptr()
    worker.handle(Started(), 0.0)
    assert worker.phase is Phase.RESTING
    begin_round(worker)
    assert worker.phase is Phase.COMPUTING
    actions = worker.handle(GradientReady(1.0, torch.ones(P), 1.0), 1.0)
    assert worker.phase is Phase.RESTING
    (sent,) = [action.message for action in actions if isinstance(action, Send)]
    assert sent.body == RoundPseudoGradient(3, BATCH, 0, 1, False)
    other = served(system(), 2, [BATCH, BATCH], optimizer="adam")[0][1]
    assert worker.replica.parameters.data_ptr() == initial
    assert [len(each) for each in worker.replica.state()] == [len(each) for each in other.replica.state()]
    assert not any(moment.any() for moment in worker.replica.state()[2:])


def begin_round(worker, number=3, parameters=None, steps=0):
    message = Message(2, Invitation(number, steps), (torch.full((P,), 2.0) if parameters is None else parameters,))
    return worker.handle(MessageArrived(message), 0.0)


def test_it_refuses_what_no_honest_participant_sends():
    (worker, *_), server = served(system(participation=0.5), 2, [BATCH] * 2)
    worker.handle(Started(), 0.0)
    begin_round(worker)
    with pytest.raises(MalformedMessageError, match="does not rest"):
        begin_round(worker, 4)
    (invitation,) = server.handle(Started(), 0.0)
    for sender, number, size in ((invitation.peer, 1, P), (1 - invitation.peer, 0, P), (invitation.peer, 0, P - 1)):
        with pytest.raises(MalformedMessageError):
            server.handle(moved(sender, number, size=size), 0.0)
    assert server.iteration == 0
    server.handle(moved(invitation.peer, 0), 0.0)
    assert server.iteration == 1


def moved(sender, number=0, *, samples=BATCH, value=1.0, size=P, steps=1, is_last=False):
    return MessageArrived(
        Message(sender, RoundPseudoGradient(number, samples, 0, steps, is_last), (torch.full((size,), value),))
    )


def test_a_round_goes_on_without_a_lost_worker_and_counts_what_had_come():
    _, server = served(system(participation=1.0), 3, [BATCH] * 3)
    server.handle(Started(), 0.0)
    server.handle(moved(0, value=1.0, samples=8), 0.0)
    assert server.handle(PeerLost(0), 0.0) == []
    server.handle(moved(1, value=4.0, samples=16), 0.0)
    invitations = server.handle(PeerLost(2), 0.0)
    torch.testing.assert_close(server.replica.parameters, torch.full((P,), -(8 * 1.0 + 16 * 4.0) / 24))
    assert [action.peer for action in invitations] == [1]


def test_a_worker_that_has_done_all_its_iterations_is_not_invited_again():
    _, server = served(system(participation=1.0), 2, [BATCH] * 2)
    server.handle(Started(), 0.0)
    server.handle(moved(0, is_last=True), 0.0)
    assert [action.peer for action in server.handle(moved(1), 0.0)] == [1]
    assert server.handle(moved(1, 1, is_last=True), 0.0) == []


def test_learning_rates_follow_the_steps_behind_the_servers_parameters():
    """Not those of the worker itself: it may train seldom, or be new."""
    (worker, *_), server = served(system(participation=1.0), 2, [3 * BATCH, BATCH], decay=lambda step: 1 / (1 + step))
    worker.handle(Started(), 0.0)
    begin_round(worker, steps=9)
    for _ in range(3):
        worker.handle(GradientReady(1.0, torch.ones(P), 1.0), 1.0)
    begin_round(worker, 4, steps=40)
    assert worker.replica.learning_rate == pytest.approx(RATE / 41)
    server.handle(Started(), 0.0)
    server.handle(moved(0, steps=3), 0.0)
    invitations = server.handle(moved(1, steps=1), 0.0)
    assert {action.message.body for action in invitations} == {Invitation(1, 2)}


@pytest.mark.parametrize("entries", [P - 1, P + 1])
def test_an_invitation_has_all_parameters(entries):
    with pytest.raises(MalformedMessageError):
        decode(Message(2, Invitation(0, 0), (torch.zeros(entries),)).encode(), workers=3, parameters=P)


def test_a_worker_that_has_done_all_its_iterations_and_was_lost_does_not_hold_up_a_round():
    """Neither while it connects again, nor by an invitation that it would not answer."""
    _, server = served(system(participation=1.0), 2, [BATCH] * 2)
    server.handle(Started(), 0.0)
    server.handle(moved(0, is_last=True), 0.0)
    server.handle(moved(1), 0.0)
    server.handle(PeerLost(0), 0.0)
    server.handle(PeerFound(0), 0.0)
    assert [action.peer for action in server.handle(moved(1, 1), 0.0)] == [1], "the handshake is not over"
    assert server.handle(MessageArrived(Message(0, Hello(9, 9, 0.1, 0, member=True))), 0.0) == []
    assert [action.peer for action in server.handle(moved(1, 2), 0.0)] == [1]


@pytest.mark.parametrize("seed", range(4))
def test_a_worker_that_left_after_its_last_pseudo_gradient_is_invited_when_it_is_back(seed):
    world = World(system(participation=1.0, epochs=0.05), 3, world_noise, iterations=3, on_loss="go_on", seed=seed)
    world.happen(1.5, world.leave, 1)
    world.happen(30, world.come, 1)
    world.run()
    assert {worker.setup.worker: worker.phase for worker in world.present} == dict.fromkeys(range(3), Phase.STOPPED)
    assert world.log(1).incarnation == 1


def test_a_resting_worker_leaves_at_once():
    (worker, *_), _ = served(system(), 2, [BATCH] * 2)
    worker.handle(Started(), 0.0)
    (sent,) = worker.handle(Leave(10.0), 0.0)
    assert sent.message.body == Leaving(0)
    assert worker.phase is Phase.LEAVING


def test_a_worker_that_returns_takes_part_again():
    world = World(system(participation=1.0, epochs=0.05), 3, world_noise, iterations=30, on_loss="go_on")
    world.happen(4, world.crash, 1)
    world.happen(9, world.come, 1)
    world.run()
    assert len(world.log(1).reports) == 30
    assert not world.aborts


def test_it_has_one_server():
    topology = {"kind": "parameter_server", "hosts": [0, 1]}
    with pytest.raises(InputError, match="one server"):
        compose(SystemSpec.model_validate(system() | {"topology": topology}))
