"""Hop (oracle 6): the token invariant, the bounded lead, and backup workers."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.events import Compute, GradientReady, MessageArrived, Send, Started
from dlion_sim.protocol.messages import Channel, Message, Mixed
from dlion_sim.protocol.phases import Phase
from dlion_sim.protocol.synchronization.policies import HopSynchronization, Token
from tests.protocol.joined import setup, workers_of


def hop(**parameters):
    return {"name": "hop", "synchronization": parameters}


class Joined:
    """Workers whose messages arrive in any order that keeps each pair's own."""

    def __init__(self, system, count=3, dead=()):
        self.workers = workers_of(system, [setup(index, count) for index in range(count)])
        self.queues = {}
        self.dead = set(dead)
        for worker in self.workers:
            self.do(worker, worker.handle(Started(), 0.0))

    def do(self, worker, actions):
        for action in actions:
            if isinstance(action, Send):
                channel = action.message.body.channel
                self.queues.setdefault((worker.setup.worker, action.peer, channel), []).append(action.message)

    def compute(self, index):
        worker = self.workers[index]
        if index not in self.dead and worker.phase is Phase.COMPUTING:
            self.do(worker, worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 0.0))

    def deliver(self, choice):
        filled = [key for key, queue in self.queues.items() if queue and key[1] not in self.dead]
        if filled:
            key = filled[choice % len(filled)]
            receiver = self.workers[key[1]]
            self.do(receiver, receiver.handle(MessageArrived(self.queues[key].pop(0)), 0.0))

    def tokens_under_way(self, sender, receiver):
        queue = self.queues.get((sender, receiver, Channel.CONTROL), [])
        return sum(message.body.count for message in queue if isinstance(message.body, Token))


schedules = st.lists(st.tuples(st.booleans(), st.integers(0, 20)), min_size=60, max_size=200)


@given(schedules, st.integers(1, 4), st.integers(0, 2), st.integers(0, 1), st.sampled_from([None, 1, 2]))
def test_tokens_count_the_gap_and_bound_the_lead(schedule, max_gap, staleness, backup, skip_from):
    """Iter(peer) - Iter(worker) + max_gap tokens are in the queue or on their way, whatever happens when."""
    joined = Joined(hop(max_gap=max_gap, staleness=staleness, backup_workers=backup, skip_from=skip_from))
    for delivers, choice in schedule:
        if delivers:
            joined.deliver(choice)
        else:
            joined.compute(choice % 3)
        for one in joined.workers:
            tokens = one.choices.synchronization.tokens
            for peer in one.setup.peers:
                gap = joined.workers[peer].iteration - one.iteration
                queued = tokens[peer] + joined.tokens_under_way(peer, one.setup.worker)
                assert queued == gap + max_gap
                assert -gap <= max_gap


@given(schedules)
def test_one_backup_worker_tolerates_one_dead_peer(schedule):
    joined = Joined(hop(backup_workers=1, staleness=0), count=4, dead=[3])
    for delivers, choice in schedule:
        joined.deliver(choice) if delivers else joined.compute(choice % 3)
    for _ in range(60):  # whoever may go on does
        for index in range(3):
            joined.compute(index)
        for choice in range(12):
            joined.deliver(choice)
    assert min(joined.workers[index].iteration for index in range(3)) > 20


def test_without_backup_a_dead_peer_stops_everyone():
    joined = Joined(hop(backup_workers=0, staleness=2), count=4, dead=[3])
    for _ in range(50):
        for index in range(3):
            joined.compute(index)
        for choice in range(12):
            joined.deliver(choice)
    assert max(joined.workers[index].iteration for index in range(3)) == 2


@pytest.mark.parametrize(("late", "due"), [("apply", "now"), ("drop", "never")])
def test_late_gradients_are_applied_or_dropped(late, due):
    one = HopSynchronization(HopSynchronization.Parameters(staleness=2, late=late), setup())
    assert one.due(tag=7, iteration=10) == due
    assert one.due(tag=8, iteration=10) == "now"
    assert one.due(tag=13, iteration=10) == "later"


def test_a_straggler_that_exchanges_parameters_continues_from_those_of_its_peers():
    """Before its next gradient it mixes in its peers' parameters of the skipped iterations."""
    system = hop(max_gap=8, staleness=0, backup_workers=0, skip_from=3, max_jump=4)
    (straggler,) = workers_of(system | {"exchange": "parameters"}, [setup(2)])
    straggler.handle(Started(), 0.0)

    def hear(peer, body, *tensors):
        return straggler.handle(MessageArrived(Message(peer, body, tensors)), 0.0)

    for peer in (0, 1):
        hear(peer, Token(6))
        for iteration in range(5 - peer):
            hear(peer, Mixed(iteration, 32), torch.full((6,), 8.0 * iteration))
    waits = straggler.handle(GradientReady(1.0, torch.zeros(6), 1.0), 0.0)
    assert not [action for action in waits if isinstance(action, Send | Compute)], "1 has still to say where it is"
    goes_on = hear(1, Mixed(4, 32), torch.full((6,), 8.0 * 4))
    assert straggler.iteration == 5, "one done and four left out"
    sent = [each.message for each in goes_on if isinstance(each, Send) and isinstance(each.message.body, Mixed)]
    assert [message.body.iteration for message in sent] == [5, 5]
    for parameters in (sent[0].tensors[0], straggler.replica.parameters):
        torch.testing.assert_close(parameters, torch.full((6,), (0 + 32 + 32) / 3))


def test_a_straggler_skips_iterations():
    """One worker computes once where the others compute ten times: it jumps after them, by no more than max_jump."""
    joined = Joined(hop(max_gap=8, staleness=50, backup_workers=1, skip_from=3, max_jump=4))
    seen = []
    for turn in range(60):
        for index in (0, 1, 2) if turn % 10 == 0 else (0, 1):
            joined.compute(index)
        for choice in range(12):
            joined.deliver(choice)
        seen.append(joined.workers[2].iteration)
    jumps = {after - before for before, after in pairwise(seen)}
    assert max(jumps) == 5, "one iteration done, and four left out"
    assert joined.workers[2].iteration > 6
    assert min(joined.workers[index].iteration for index in (0, 1)) - joined.workers[2].iteration <= 8
