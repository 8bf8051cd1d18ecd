"""HALoS: a short program of its rules, asynchronous local SGD as its case of one region, and what is dropped."""

from collections import defaultdict
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.events import GradientReady, MessageArrived, PeerFound, PeerLost, Started
from dlion_sim.protocol.exchange.async_local_sgd import PseudoGradient
from dlion_sim.protocol.exchange.halos import GlobalAnswer, RegionPseudoGradient
from dlion_sim.protocol.exchange.hosted import Answer
from dlion_sim.protocol.membership_messages import Begins, Hello
from dlion_sim.protocol.messages import Message
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.scenario import ChoiceSpec, SystemSpec
from tests.protocol.churn import World
from tests.protocol.churn import noise as world_noise
from tests.protocol.joined import layout, noise, noisy, random_delays, run, setup, team
from tests.protocol.test_churn import WHAT, ends_well

RATE, P, BATCH = 0.1, 6, 32
TWO = ("a", "a", "b", "b")


def halos(**parameters):
    return {"name": "halos", "exchange": parameters}


def noted(workers):
    """What the workers' servers take in, in order: (worker, kind, sender, iteration)."""
    log = []
    for worker in workers:
        exchange = worker.choices.exchange

        def take(message, take=exchange.take, number=worker.setup.worker):
            log.append((number, type(message.body), message.sender, message.body.iteration))
            return take(message)

        exchange.take = take
    return log


class Nesterov:
    """Delayed Nesterov momentum, by its definition; `rate` is for a whole pseudo-gradient."""

    def __init__(self, rate, momentum, every):
        self.rate, self.momentum, self.every = rate, momentum, every
        self.theta, self.m, self.seen = np.zeros(P), np.zeros(P), []

    def __call__(self, moved):
        self.seen.append(moved)
        step = moved / self.every
        if len(self.seen) % self.every == 0:
            self.m = self.momentum * self.m + np.mean(self.seen[-self.every :], axis=0)
            step = step + self.momentum * self.m
        self.theta = self.theta - self.rate * self.every * step


@given(
    regions=st.lists(st.sampled_from("abc"), min_size=1, max_size=5).map(tuple),
    period=st.integers(1, 3),
    updates=st.integers(1, 4),
    merge=st.sampled_from([0.0, 0.25, 1.0]),
    every=st.sampled_from([(1, 2), (3, 1)]),
    seed=st.integers(0, 5),
)
def test_it_does_what_its_rules_say(regions, period, updates, merge, every, seed):
    """Given the order in which messages reach each server."""
    outer = {"region_learning_rate": 0.3, "region_momentum": 0.6, "region_momentum_every": every[0]}
    outer |= {"global_learning_rate": 0.2, "global_momentum": 0.5, "global_momentum_every": every[1]}
    count = len(regions)
    system = halos(period=period, region_updates=updates, merge=merge, **outer)
    workers = team(system, count, iterations=12, regions=regions)
    log = noted(workers)
    reports = run(workers, noisy, delays=random_delays(seed, unequal=True))
    servers = {region: Nesterov(0.3, 0.6, every[0]) for region in regions}
    top, ends = Nesterov(0.2, 0.5, every[1]), np.zeros((count, P))
    snapshots, sent, answers = defaultdict(lambda: np.zeros(P)), {}, {}
    since, dropped = dict.fromkeys(regions, 0), 0
    for number, kind, sender, iteration in log:
        region = regions[number]
        if kind is PseudoGradient:
            steps = [noise(sender, each).numpy() for each in range(iteration + 1 - period, iteration + 1)]
            servers[region](RATE * np.sum(steps, axis=0))
            ends[sender] = servers[region].theta
            since[region] += 1
            if since[region] >= updates and region not in sent:
                sent[region] = snapshots[region] - servers[region].theta
                snapshots[region], since[region] = servers[region].theta, 0
        elif kind is RegionPseudoGradient:
            assert number == 0
            top(sent[regions[sender]])
            answers[regions[sender]] = top.theta
        elif kind is GlobalAnswer:
            del sent[region]
            dropped += since[region] * period * BATCH
            servers[region].theta = (1 - merge) * servers[region].theta + merge * answers[region]
            snapshots[region], since[region] = servers[region].theta, 0
    assert sum(kind is PseudoGradient for _, kind, *_ in log) == count * (12 // period)
    for worker in range(count):
        rest = [noise(worker, each).numpy() for each in range(12 - 12 % period, 12)]
        ends[worker] -= RATE * np.sum(rest, axis=0)
    np.testing.assert_allclose([worker.replica.parameters.numpy() for worker in workers], ends, atol=1e-5)
    seen = sum(report.dropped for of_worker in reports for report in of_worker)
    left = sum(worker.choices.exchange.dropped() for worker in workers)  # After its last iteration.
    assert seen + left == dropped


@given(seed=st.integers(0, 5))
def test_one_region_that_merges_nothing_is_asynchronous_local_sgd(seed):
    """To the bit: its server gives the same answers to the same pseudo-gradients."""
    region = {"region_learning_rate": 0.2, "region_momentum": 0.9, "region_momentum_every": 4}
    workers = team(halos(period=3, region_updates=2, merge=0.0, **region), 4, iterations=20)
    pseudo_gradients, answers, host = [], [], workers[0].choices.exchange
    take, deliver = host.take, host.deliver

    def noting_take(message):
        if type(message.body) is PseudoGradient:
            pseudo_gradients.append(message)
        return take(message)

    def noting_deliver(receiver, body, *tensors):
        if type(body) is Answer:
            answers.append(tensors[0])
        return deliver(receiver, body, *tensors)

    host.take, host.deliver = noting_take, noting_deliver
    run(workers, noisy, delays=random_delays(seed, unequal=True))
    outer = {"outer_learning_rate": 0.8, "outer_momentum": 0.9, "momentum_every": 4}
    parameters = compose(SystemSpec(name="async_local_sgd", exchange=ChoiceSpec(parameters=outer))).choices["exchange"]
    server = ParameterServer(4, 4, Replica(layout(P), torch.zeros(P), learning_rate=RATE), 0, parameters.parameters)
    theirs = [server.handle(MessageArrived(message), 0.0)[0].message.tensors[0] for message in pseudo_gradients]
    assert len(theirs) == len(answers) == 4 * 6
    assert all(torch.equal(*pair) for pair in zip(answers, theirs, strict=True))


@pytest.mark.parametrize(("seconds", "drops"), [(0.0, False), (5.0, True)])
def test_updates_while_the_global_answer_is_under_way_are_dropped_and_counted(seconds, drops):
    workers = team(halos(period=1, region_updates=2), 4, iterations=40, regions=TWO)
    reports = run(workers, noisy, delays=lambda participant: seconds if participant == 2 else 0.1)
    dropped = [sum(report.dropped for report in of_worker) for of_worker in reports]
    assert dropped[0] == dropped[1] == dropped[3] == 0
    assert (dropped[2] > 0) == drops


@pytest.mark.parametrize("what", WHAT, ids=lambda what: what.__name__)
def test_servers_of_two_regions_move_to_the_next_worker(what):
    for seed in range(2):
        keys = {"iterations": 12, "on_loss": "go_on", "absent": (3,) if what.__name__ == "newcomer" else ()}
        world = World(halos(period=2, region_updates=2), 4, world_noise, seed=seed, regions=TWO, **keys)
        what(world)
        world.run()
        ends_well(world)


@pytest.mark.parametrize("gone", [0, 2])
def test_the_loss_and_return_of_a_host(gone):
    """Of the global server and region a's, or of b's."""
    for seed in range(4):
        keys = {"iterations": 40, "on_loss": "go_on", "seed": seed}
        world = World(halos(period=2, region_updates=2), 4, world_noise, regions=TWO, **keys)
        world.happen(20, world.crash, gone)
        world.happen(40, world.come, gone)
        world.run()
        ends_well(world)
        assert world.log(gone).joined
        assert all(worker.iteration == 40 for worker in world.present)


def test_a_pseudo_gradient_whose_host_is_lost_is_dropped():
    workers = team(halos(period=1), 3, iterations=10)
    one = workers[1]
    one.handle(Started(), 0.0)
    one.handle(GradientReady(1.0, torch.ones(P), 1.0), 1.0)
    assert one.iteration == 0
    report = next(each for each in one.handle(PeerLost(0), 2.0) if hasattr(each, "dropped"))
    assert (report.iteration, report.applied, report.dropped) == (1, 0, BATCH)
    before = one.replica.parameters.clone()
    # It is host now, of a server that begins where both began.
    one.handle(GradientReady(1.0, torch.ones(P), 1.0), 3.0)
    assert one.iteration == 2
    torch.testing.assert_close(before, torch.full((P,), -RATE))
    torch.testing.assert_close(one.replica.parameters, torch.full((P,), -RATE - 0.2 * RATE))


def test_a_host_that_is_back_begins_its_servers_where_its_sponsor_was():
    """Not with the initial parameters, from which all are far away by then."""
    keys = {"iterations": 60, "on_loss": "go_on", "delay": lambda random: 0.2 * random.expovariate(1.0)}
    ends = []
    for is_lost in (False, True):
        world = World(halos(period=2, region_updates=2), 4, lambda *_: (1.0, -torch.ones(P)), regions=TWO, **keys)
        if is_lost:
            world.happen(6, world.crash, 0)
            world.happen(9, world.come, 0)
        world.run()
        ends.append(min(float(worker.replica.parameters.min()) for worker in world.present))
    without, returned = ends
    assert returned > 0.7 * without, "its global server would pull all back to where they began"


@pytest.mark.parametrize(
    ("system", "body"),
    [
        (halos(period=1, region_updates=1), PseudoGradient(0, BATCH, 0, 1.0)),
        (halos(period=1, region_updates=1), RegionPseudoGradient(0, BATCH, 0, 1.0)),
        (
            {"name": "decoupled_diloco", "exchange": {"period": 1, "fragments": 1, "delay": 0, "precision": "fp32"}},
            PseudoGradient(0, BATCH, 0, 1.0),
        ),
    ],
    ids=str,
)
def test_who_is_host_no_more_keeps_no_server(system, body):
    """A pseudo-gradient may be under way to it; were it host again, it would go on with parameters of long ago."""
    one = compose(SystemSpec.model_validate(system)).worker(replace(setup(1, 3), on_loss="go_on"))
    one.handle(Started(), 0.0)
    one.handle(PeerLost(0), 1.0)
    one.handle(PeerFound(0), 2.0)
    one.handle(MessageArrived(Message(0, Hello(0, 0, 0.0, 0, False))), 2.1)
    one.handle(MessageArrived(Message(0, Begins(1))), 2.2)
    late = one.handle(MessageArrived(Message(2, body, (torch.ones(P),))), 2.3)
    assert [send.peer for send in late] == [2], "it is answered"
    assert one.choices.exchange.dropped() == BATCH, "but to no server that stays"
    one.choices.exchange.start.fill_(100.0)
    one.handle(PeerLost(0), 1000.0)
    again = msgspec.structs.replace(body, iteration=500)
    (send,) = one.handle(MessageArrived(Message(2, again, (torch.zeros(P),))), 1001.0)
    assert torch.equal(send.message.tensors[0], torch.full((P,), 100.0))
