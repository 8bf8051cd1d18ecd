"""Decoupled DiLoCo: its outer steps by their definition, DiLoCo as its case of all learners, quorum, grace, losses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.errors import InputError
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.events import GradientReady, MessageArrived, PeerFound, PeerLost, Started
from dlion_sim.protocol.exchange.async_local_sgd import PseudoGradient
from dlion_sim.protocol.exchange.decoupled_diloco import merged
from dlion_sim.protocol.exchange.hosted import Answer
from dlion_sim.protocol.membership_messages import Begins, Hello
from dlion_sim.protocol.messages import Message
from dlion_sim.scenario import SystemSpec
from tests.protocol.churn import World
from tests.protocol.churn import noise as world_noise
from tests.protocol.joined import noisy, random_delays, run, setup, team
from tests.protocol.test_churn import ends_well

RATE, P = 0.1, 6


def decoupled(**parameters):
    return {"name": "decoupled_diloco", "exchange": parameters}


def noted(workers):
    """What is published, in order, and the syncer's outer steps: fragment, publications, answers."""
    published, steps, syncer = [], [], workers[0].choices.exchange
    take, step, deliver = syncer.take, syncer._step, syncer.deliver

    def noting_take(message):
        if isinstance(message.body, PseudoGradient):
            published.append(message)
        return take(message)

    def noting_deliver(receiver, body, *tensors):
        if isinstance(body, Answer):
            steps[-1][2].append(tensors[0].numpy().copy())
        return deliver(receiver, body, *tensors)

    def noting_step(number, publications):
        steps.append((number, publications, []))
        return step(number, publications)

    syncer.take, syncer._step, syncer.deliver = noting_take, noting_step, noting_deliver
    return published, steps


def radial_mean(moved, weights):
    """Mean length times mean direction, by the definition."""
    lengths = [np.linalg.norm(each) for each in moved]
    direction = sum(w * each / length for w, each, length in zip(weights, moved, lengths, strict=True))
    return np.dot(weights, lengths) * direction / np.linalg.norm(direction)


@given(
    count=st.integers(1, 4),
    fragments=st.integers(1, 2),
    delay=st.integers(0, 3),
    quorum=st.sampled_from([None, 1, 2, 4]),
    margin=st.sampled_from([0.0, 0.5, 1.0]),
    radial=st.booleans(),
    seed=st.integers(0, 5),
)
def test_outer_steps_are_those_of_the_rules_and_nothing_counts_twice(
    count, fragments, delay, quorum, margin, radial, seed
):
    exchange = {"period": 4, "fragments": fragments, "delay": delay, "quorum": quorum, "margin": margin}
    outer = {"outer_learning_rate": 0.8, "outer_momentum": 0.6, "radial": radial}
    workers = team(decoupled(**exchange, **outer), count, iterations=13)
    published, steps = noted(workers)
    run(workers, noisy, delays=random_delays(seed, unequal=True))
    assert all(worker.iteration == 13 for worker in workers)
    used = [(each.sender, each.body.iteration) for _, publications, _ in steps for each in publications]
    sent = [(each.sender, each.body.iteration) for each in published]
    assert sorted(used) == sorted(sent), "each counts once"
    assert len(sent) == count * sum(1 for step in range(1, 14) if step % (4 // fragments) == 0)
    phi, m = {}, {}
    for number, publications, answers in steps:
        samples = np.array([each.body.batch_size for each in publications])
        moved = [each.tensors[0].numpy().astype(float) for each in publications]
        weights = samples / samples.sum()
        change = radial_mean(moved, weights) if radial else np.average(moved, axis=0, weights=weights)
        m[number] = 0.6 * m.get(number, 0.0) + change
        phi[number] = phi.get(number, 0.0) - 0.8 * (change + 0.6 * m[number])
        assert len(answers) == len(publications)
        for answer in answers:
            np.testing.assert_allclose(answer, phi[number], atol=1e-5)


@given(seed=st.integers(0, 3))
def test_with_all_learners_and_no_delay_it_is_diloco(seed):
    exchange = {"period": 3, "fragments": 1, "delay": 0, "quorum": 4, "radial": False}
    ours = team(decoupled(**exchange), 4, iterations=13)
    theirs = team({"name": "diloco", "exchange": {"period": 3}}, 4, iterations=13)
    for workers in (ours, theirs):
        run(workers, noisy, delays=random_delays(seed))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.replica.parameters, other.replica.parameters)
    assert sum(worker.choices.exchange.dropped() for worker in ours) == 0


def slow(workers, last, margin):
    """Three learners, the last of which takes `last` s for what takes others 1 s: the sizes of outer steps."""
    exchange = {"period": 6, "fragments": 1, "delay": 5, "quorum": 2, "margin": margin}
    team_ = team(decoupled(**exchange), workers, iterations=60)
    published, steps = noted(team_)
    run(team_, noisy, delays=lambda participant: last if participant == workers - 1 else 1.0)
    assert sorted(id(each) for _, each, _ in steps for each in each) == sorted(map(id, published))
    return [len(publications) for _, publications, _ in steps]


def test_what_a_quorum_leaves_out_comes_later_and_grace_waits_for_it():
    without, grace = slow(3, 1.3, 0.0), slow(3, 1.3, 1.0)
    assert min(without[:-3]) >= 2, "but at the end, when others have done their iterations"
    assert without.count(3) < grace.count(3)


def test_what_is_learned_before_an_answer_comes_is_dropped_and_counted():
    workers = team(decoupled(period=4, fragments=1, delay=2, quorum=2), 2, iterations=8)
    one = workers[0]
    one.handle(Started(), 0.0)
    for step in range(6):
        actions = one.handle(GradientReady(1.0, torch.ones(P), 1.0), step + 1.0)
    assert one.iteration == 5, "it waits for a quorum, but has gone on for `delay` iterations"
    actions = one.handle(MessageArrived(Message(1, PseudoGradient(3, 128, 0, 1.0), (torch.full((P,), 0.4),))), 9.0)
    (report,) = [each for each in actions if hasattr(each, "dropped")]
    assert (report.iteration, report.dropped) == (6, 2 * 32)
    torch.testing.assert_close(one.replica.parameters, torch.full((P,), -0.7 * 0.4 * 1.9))


def test_pseudo_gradients_have_the_mean_length_and_direction_but_for_embeddings():
    rng = np.random.default_rng(1)
    moved, weights = [rng.normal(size=6).astype(np.float32) for _ in range(3)], [0.5, 0.3, 0.2]
    plain = np.array([True, True, False, False, False, False])
    expected = np.average(moved, axis=0, weights=weights)
    expected[2:] = radial_mean([each[2:] for each in moved], weights)
    given_ = [torch.from_numpy(each) for each in moved]
    np.testing.assert_allclose(merged(given_, weights, torch.from_numpy(plain)), expected, rtol=1e-5)
    assert torch.equal(merged([torch.zeros(6)] * 2, [0.5, 0.5], torch.from_numpy(plain)), torch.zeros(6))


@pytest.mark.parametrize("gone", [0, 1])
def test_the_loss_and_return_of_the_syncer_or_of_a_learner(gone):
    for seed in range(4):
        exchange = decoupled(period=4, fragments=2, delay=1, quorum=3)
        world = World(exchange, 4, world_noise, iterations=60, on_loss="go_on", seed=seed)
        world.happen(20, world.crash, gone)
        world.happen(40, world.come, gone)
        world.run()
        ends_well(world)
        assert all(worker.iteration == 60 for worker in world.present)
        assert world.log(gone).joined


def test_what_a_lost_syncer_did_not_answer_is_dropped():
    one = team(decoupled(period=2, fragments=1, delay=0), 3, iterations=10)[1]
    one.handle(Started(), 0.0)
    for step in range(2):
        one.handle(GradientReady(1.0, torch.ones(P), 1.0), step + 1.0)
    assert one.iteration == 1
    report = next(each for each in one.handle(PeerLost(0), 3.0) if hasattr(each, "dropped"))
    assert (report.iteration, report.dropped) == (2, 2 * 32)


def test_what_a_former_syncer_answers_is_dropped():
    """The round that it closes when another one becomes the syncer is not in that one's state."""
    system = SystemSpec.model_validate(decoupled(period=2, fragments=1, delay=0, quorum=2))
    one = compose(system).worker(replace(setup(1, 3), absent=frozenset({0})))
    one.handle(Started(), 0.0)
    for step in range(2):
        one.handle(GradientReady(1.0, torch.ones(P), 1.0), step + 1.0)
    assert one.iteration == 1, "it waits for a quorum"
    one.handle(PeerFound(0), 3.0)
    one.handle(MessageArrived(Message(0, Hello(0, 0, 0.0, 0, False))), 3.1)
    actions = one.handle(MessageArrived(Message(0, Begins(2))), 3.2)
    report = next(each for each in actions if hasattr(each, "dropped"))
    assert (report.iteration, report.applied, report.dropped) == (2, 1, 2 * 32)


@pytest.mark.parametrize("parameters", [{"period": 5}, {"delay": 100}, {"fragments": 4, "period": 4, "delay": 0}])
def test_what_does_not_fit_is_refused(parameters):
    with pytest.raises(InputError, match="fragments"):
        team(decoupled(**parameters), 2)
