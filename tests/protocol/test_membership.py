"""Joining and leaving, step by step: what counts, to the bit, and what nobody may say."""

import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.choices import Choice, Setup
from dlion_sim.protocol.events import (
    Abort,
    GradientReady,
    Joined,
    Leave,
    Left,
    MessageArrived,
    MessageSent,
    PeerFound,
    PeerLost,
    Send,
    Started,
)
from dlion_sim.protocol.exchange.parameter_server import ParameterServerExchange, Push
from dlion_sim.protocol.exchange.periodic import DiLoCoExchange
from dlion_sim.protocol.faults import LocalProtocolError, MalformedMessageError
from dlion_sim.protocol.membership_messages import Begins, Hello, Leaving, State, StateRequest
from dlion_sim.protocol.messages import Contribution, Message, decode
from dlion_sim.protocol.phases import Phase
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.synchronization.hop import Token
from dlion_sim.protocol.updates import Update
from tests.protocol.churn import P, World, noise
from tests.protocol.flushing import flushed
from tests.protocol.joined import layout, setup, workers_of

RATE = 0.1


def worker_of(system="baseline", *, joining=False, on_loss="go_on", absent=(), **keys):
    """Worker 0 of three, started."""
    made = setup(**keys)
    one = Setup(
        **{name: getattr(made, name) for name in ("worker", "workers", "replica", "mixing", "batch_size")},
        **{name: getattr(made, name) for name in ("training_samples", "shard_samples", "side", "iterations")},
        absent=frozenset(absent),
        on_loss=on_loss,
    )
    (worker,) = workers_of({"name": system} if isinstance(system, str) else system, [one])
    worker.handle(Started(joining), 0.0)
    return worker


def came(sender, body, *tensors):
    return MessageArrived(Message(sender, body, tensors))


def contributed(sender, iteration, value=0.0):
    return came(sender, Contribution(iteration, 32), torch.full((P,), value))


def computed(value=0.0):
    return GradientReady(1.0, torch.full((P,), value), 1.0)


def member(first, iteration=None, loss=1.0, queued=0):
    return Hello(first, first - 1 if iteration is None else iteration, loss, queued, True)


NEWCOMER = Hello(0, 0, 0.0, 0, False)


def sent(actions, peer=None):
    """The bodies of what is sent, to that peer if to one."""
    return [each.message.body for each in actions if isinstance(each, Send) and peer in (None, each.peer)]


def messages(actions, peer):
    return [each.message for each in actions if isinstance(each, Send) and each.peer == peer]


def at(worker, value):
    torch.testing.assert_close(worker.replica.parameters, torch.full((P,), value), rtol=1e-6, atol=1e-6)


# Who fails before, while and after it sends, or while all wait to merge: means are over those who count, exactly.


def test_who_fails_before_it_sends_does_not_count():
    worker = worker_of()
    worker.handle(PeerLost(2), 0.5)
    worker.handle(contributed(1, 0, 2.0), 0.6)
    worker.handle(computed(4.0), 1.0)
    at(worker, -RATE * (4 + 2) / 2)


def test_who_fails_when_others_are_awaited_does_not_count():
    worker = worker_of()
    worker.handle(contributed(2, 0, 100.0), 0.5)
    worker.handle(computed(4.0), 1.0)
    worker.handle(PeerLost(2), 1.5)
    assert worker.iteration == 0
    worker.handle(contributed(1, 0, 2.0), 2.0)
    at(worker, -RATE * (4 + 2) / 2)


def test_who_fails_after_the_merge_has_counted():
    worker = worker_of()
    for peer, value in ((1, 2.0), (2, 3.0)):
        worker.handle(contributed(peer, 0, value), 0.5)
    worker.handle(computed(4.0), 1.0)
    worker.handle(PeerLost(2), 1.5)
    at(worker, -RATE * (4 + 2 + 3) / 3)


def test_a_loss_ends_the_wait_for_it():
    worker = worker_of()
    worker.handle(contributed(1, 0, 2.0), 0.5)
    worker.handle(computed(4.0), 1.0)
    actions = worker.handle(PeerLost(2), 2.0)
    assert worker.iteration == 1
    assert (actions[0].waited_for, actions[0].wait_reason) == (2, "lost")
    at(worker, -RATE * (4 + 2) / 2)


def test_who_leaves_counts_up_to_its_last_contribution_and_is_not_awaited_after_it():
    worker = worker_of(on_loss="wait")
    worker.handle(contributed(2, 0, 3.0), 0.5)
    worker.handle(came(2, Leaving(1)), 0.5)
    worker.handle(PeerLost(2), 0.7)
    worker.handle(computed(4.0), 1.0)
    worker.handle(contributed(1, 0, 2.0), 2.0)
    at(worker, -RATE * (4 + 2 + 3) / 3)
    worker.handle(computed(4.0), 3.0)
    worker.handle(contributed(1, 1, 2.0), 3.0)
    at(worker, -RATE * (4 + 2 + 3) / 3 - RATE * (4 + 2) / 2)


def test_nothing_is_heard_any_more_of_who_has_left():
    worker = worker_of()
    worker.handle(came(2, Leaving(0)), 0.5)
    for message in (contributed(2, 0, 9.0), came(2, Token(1)), came(2, member(3))):
        assert worker.handle(message, 0.6) == []


def test_a_lost_one_is_awaited_where_that_is_asked_for():
    worker = worker_of(on_loss="wait")
    worker.handle(computed(), 1.0)
    worker.handle(contributed(1, 0), 2.0)
    worker.handle(PeerLost(2), 2.0)
    assert worker.iteration == 0
    assert sent(worker.handle(PeerFound(2), 3.0)) == [Hello(1, 0, 1.0, worker.setup.links.waiting, True)]
    worker.handle(came(2, NEWCOMER), 4.0)
    worker.handle(came(2, Begins(1)), 4.0)
    assert worker.iteration == 1


# A member and a newcomer


def test_a_member_waits_for_a_newcomer_from_the_iteration_on_that_it_has_told_it():
    worker = worker_of()
    worker.handle(PeerLost(2), 0.1)
    assert sent(worker.handle(PeerFound(2), 0.2), 2) == [Hello(1, 0, float("inf"), 0, True)]
    assert [action.peer for action in worker.handle(computed(1.0), 1.0) if isinstance(action, Send)] == [1, 2]
    worker.handle(contributed(1, 0, 3.0), 1.0)
    assert worker.iteration == 1
    at(worker, -RATE * (1 + 3) / 2)
    worker.handle(computed(1.0), 2.0)
    worker.handle(contributed(1, 1, 3.0), 2.0)
    assert worker.iteration == 1, "it may begin with this one"
    worker.handle(came(2, NEWCOMER), 2.5)
    worker.handle(came(2, Begins(2)), 2.5)
    assert worker.iteration == 2
    at(worker, -RATE * (1 + 3) / 2 * 2)


def test_a_newcomer_counts_from_its_first_contribution_on_even_if_that_is_faster_than_its_word():
    worker = worker_of()
    worker.handle(PeerLost(2), 0.1)
    worker.handle(PeerFound(2), 0.2)
    worker.handle(contributed(2, 1, 8.0), 0.3)
    for iteration in range(2):
        worker.handle(contributed(1, iteration, 3.0), 1.0)
        worker.handle(computed(1.0), 1.0)
    at(worker, -RATE * (1 + 3) / 2 - RATE * (1 + 3 + 8) / 3)


def joining(system="baseline", **keys):
    """A newcomer that has been told of iteration 4 by 1 and 3 by 2."""
    worker = worker_of(system, joining=True, **keys)
    assert worker.phase is Phase.JOINING
    for peer in (1, 2):
        assert sent(worker.handle(PeerFound(peer), 1.0)) == [NEWCOMER]
    assert not worker.handle(came(1, member(4)), 2.0)
    return worker, worker.handle(came(2, member(3)), 2.0)


def state_of(worker, iteration, parameters, applied=(-1, -1, -1), peer=1):
    parts = [torch.tensor([each + 1.0 for each in applied]), torch.tensor([3.0]), parameters, torch.empty(0)]
    return [came(peer, State(iteration, part, len(parts)), tensor) for part, tensor in enumerate(parts)]


def test_a_newcomer_begins_with_the_first_iteration_of_which_it_gets_everything():
    worker, actions = joining()
    assert sent(actions, 1) == [Begins(4), StateRequest(4)]
    assert sent(actions, 2) == [Begins(4)]
    for peer, iteration, value in ((1, 4, 2.0), (2, 3, 50.0), (2, 4, 3.0)):
        worker.handle(contributed(peer, iteration, value), 3.0)
    *first, last = state_of(worker, 4, torch.full((P,), 7.0), applied=(-1, 3, 3))
    for part in first:
        assert worker.handle(part, 4.0) == []
    actions = worker.handle(last, 5.0)
    assert actions[0] == Joined(4, 1, 5.0)
    assert (worker.phase, worker.iteration) == (Phase.COMPUTING, 4)
    worker.handle(computed(1.0), 6.0)
    assert worker.iteration == 5
    at(worker, 7 - RATE * (1 + 2 + 3) / 3)


def test_what_the_state_has_of_a_peer_is_not_applied_again():
    worker, actions = joining({"name": "baseline", "synchronization": "bounded_staleness"})
    assert sent(actions, 1) == [Begins(4), StateRequest(4)]
    for iteration in (3, 4, 5):
        worker.handle(contributed(2, iteration, iteration * 10.0), 3.0)
    for part in state_of(worker, 4, torch.zeros(P), applied=(-1, -1, 4)):
        worker.handle(part, 4.0)
    worker.handle(computed(0.0), 6.0)
    at(worker, -RATE * 50 / 3)


def test_where_nobody_waits_a_newcomer_begins_where_its_sponsor_is():
    worker, actions = joining("ako")
    assert sent(actions) == [StateRequest(4)]
    actions = [each for part in state_of(worker, 6, torch.zeros(P)) for each in worker.handle(part, 4.0)]
    assert actions[0] == Joined(6, 1, 4.0)
    assert [sent(actions, peer)[:1] for peer in (1, 2)] == [[Begins(6)]] * 2


@pytest.mark.parametrize(
    ("sponsor", "chosen"), [("nearest", 1), ("least_loaded", 2), ("best", 2)], ids=["nearest", "least_loaded", "best"]
)
def test_a_sponsor_is_chosen_as_is_said(sponsor, chosen):
    worker = worker_of({"name": "baseline", "synchronization": "bounded_staleness"}, joining=True)
    object.__setattr__(worker.setup, "sponsor", sponsor)
    for peer in (1, 2):
        worker.handle(PeerFound(peer), 1.0)
    worker.handle(came(1, member(4, loss=float("nan"), queued=9)), 2.0)
    actions = worker.handle(came(2, member(3, loss=0.5, queued=5)), 2.0)
    assert StateRequest(4) in sent(actions, chosen)


def test_who_is_further_behind_than_peers_may_be_is_no_sponsor():
    worker = worker_of({"name": "hop", "synchronization": {"staleness": 2}}, joining=True)
    for peer in (1, 2):
        worker.handle(PeerFound(peer), 1.0)
    worker.handle(came(1, member(4)), 2.0)
    actions = worker.handle(came(2, member(90)), 2.0)
    assert sent(actions, 1) == [Begins(90)]
    assert sent(actions, 2) == [Begins(90), StateRequest(90)]


def test_another_sponsor_is_asked_where_one_is_lost():
    worker, _ = joining()
    worker.handle(state_of(worker, 4, torch.zeros(P))[0], 3.0)
    assert sent(worker.handle(PeerLost(1), 3.5), 2) == [StateRequest(4)]
    for part in state_of(worker, 4, torch.full((P,), 7.0), peer=2):
        worker.handle(part, 4.0)
    assert worker.phase is Phase.COMPUTING
    at(worker, 7.0)


def test_who_is_reachable_is_waited_for_and_who_is_not_is_not():
    worker = worker_of(joining=True, absent=(2,))
    worker.handle(PeerFound(1), 1.0)
    assert sent(worker.handle(came(1, member(4)), 2.0)) == [Begins(4), StateRequest(4)]
    worker = worker_of(joining=True)
    worker.handle(PeerFound(1), 1.0)
    assert not sent(worker.handle(came(1, member(4)), 2.0))
    assert sent(worker.handle(PeerLost(2), 3.0)) == [Begins(4), StateRequest(4)]


def test_where_nobody_has_a_state_the_lowest_begins_anew():
    worker = worker_of(joining=True)
    for peer in (1, 2):
        worker.handle(PeerFound(peer), 1.0)
    assert not worker.handle(came(1, NEWCOMER), 2.0)
    actions = worker.handle(came(2, NEWCOMER), 2.0)
    assert actions[0] == Joined(0, None, 2.0)
    assert [sent(actions, peer) for peer in (1, 2)] == [[Hello(0, 0, float("inf"), 0, True)]] * 2
    worker = worker_of(joining=True, worker=2, mixing={0: 1 / 3, 1: 1 / 3})
    for peer in (0, 1):
        worker.handle(PeerFound(peer), 1.0)
        assert not worker.handle(came(peer, NEWCOMER), 2.0)


def test_a_sponsor_hands_its_state_on_as_soon_as_it_is_there():
    worker = worker_of()
    worker.handle(PeerLost(2), 0.1)
    worker.handle(PeerFound(2), 0.2)
    worker.handle(came(2, NEWCOMER), 0.3)
    worker.handle(came(2, Begins(1)), 0.3)
    assert not worker.handle(came(2, StateRequest(1)), 0.3)
    worker.handle(computed(4.0), 1.0)
    actions = worker.handle(contributed(1, 0, 2.0), 1.5)
    parts = [each for each in messages(actions, 2) if isinstance(each.body, State)]
    assert [each.body for each in parts] == [State(1, part, 4) for part in range(4)]
    assert parts[0].tensors[0].tolist() == [0, 1, 1]
    assert torch.equal(parts[2].tensors[0], worker.replica.parameters)
    for part in parts:
        assert len(part.encode()) == part.size
        decode(part.encode(), workers=3, parameters=P)


def test_two_members_take_each_other_in_where_both_get_everything():
    worker = worker_of()
    worker.handle(PeerLost(2), 0.1)
    worker.handle(PeerFound(2), 0.2)
    worker.handle(came(2, member(3)), 0.3)
    for iteration in range(3):
        worker.handle(contributed(1, iteration), 1.0)
        worker.handle(computed(), 1.0)
    assert worker.iteration == 3
    worker.handle(contributed(1, 3, 2.0), 1.0)
    worker.handle(computed(4.0), 1.0)
    assert worker.iteration == 3
    worker.handle(contributed(2, 3, 3.0), 2.0)
    at(worker, -RATE * (4 + 2 + 3) / 3)


@pytest.mark.parametrize("optimizer", [{}, {"momentum": 0.9}, {"kind": "adam"}], ids=str)
def test_a_replica_goes_on_from_anothers_state_to_the_bit(optimizer):
    one, other = (Replica(layout(P), torch.zeros(P), learning_rate=RATE, **optimizer) for _ in range(2))
    gradients = torch.randn(6, P, generator=torch.Generator().manual_seed(1))
    for gradient in gradients[:3]:
        one.step(gradient)
    other.take_over(one.state())
    for gradient in gradients[3:]:
        one.step(gradient)
        other.step(gradient)
    assert torch.equal(one.parameters, other.parameters)
    assert one.learning_rate == other.learning_rate


def test_the_outer_optimizers_state_is_handed_on():
    one, other = (DiLoCoExchange(DiLoCoExchange.Parameters(period=1), setup(index)) for index in range(2))
    for exchange in (one, other):
        assert [len(tensor) for tensor in exchange.state()] == [P, 0]
    for step in range(3):
        one._next_start(torch.full((P,), float(step)))
    other.take_over(one.state())
    assert torch.equal(one._next_start(torch.ones(P)), other._next_start(torch.ones(P)))


# Leaving


def test_who_leaves_sends_what_it_is_at_and_then_that_it_leaves():
    worker = worker_of()
    assert worker.handle(Leave(), 0.5) == []
    actions = worker.handle(computed(), 1.0)
    assert [type(body) for body in sent(actions, 1)] == [Contribution, Leaving]
    assert Leaving(1) in sent(actions, 2)
    assert worker.phase is Phase.LEAVING
    for peer in (1, 2):
        for _ in range(2):
            last = worker.handle(MessageSent(peer, 60), 2.0)
    assert last == [Left()]
    assert worker.handle(contributed(1, 0), 3.0) == []


def test_what_cannot_be_in_time_is_not_waited_for():
    worker = worker_of()
    for peer in (1, 2):
        worker.handle(contributed(peer, 0), 1.0)
    worker.handle(computed(), 1.0)
    actions = worker.handle(Leave(deadline=1.5), 1.2)
    assert sent(actions) == [Leaving(1)] * 2
    assert worker.handle(computed(), 2.0) == []
    worker = worker_of()
    for peer in (1, 2):
        worker.handle(contributed(peer, 0), 1.0)
    worker.handle(computed(), 1.0)
    assert worker.handle(Leave(deadline=2.5), 1.2) == []


def test_who_waits_or_is_done_leaves_at_once():
    worker = worker_of()
    worker.handle(computed(), 1.0)
    assert sent(worker.handle(Leave(), 1.5)) == [Leaving(1)] * 2
    assert sent(worker.handle(PeerFound(5), 1.6)) == [Leaving(0)]
    alone = worker_of(iterations=0)
    assert alone.phase is Phase.STOPPED
    assert sent(alone.handle(Leave(), 1.0)) == [Leaving(0)] * 2


# Words that no honest peer says


def state(participant):
    """All of it but the time of the last event."""
    return pickle.dumps({name: value for name, value in vars(participant).items() if name != "_now"})


def refused(participant, event, match):
    decode(event.message.encode(), workers=9, parameters=P)
    before = state(participant)
    with pytest.raises(MalformedMessageError, match=match):
        participant.handle(event, 9.0)
    assert state(participant) == before


def test_who_was_there_from_the_start_says_nothing_of_coming():
    worker = worker_of()
    refused(worker, came(1, member(3)), "another hello")
    refused(worker, came(1, NEWCOMER), "another hello")
    refused(worker, came(1, Begins(5)), "begins")
    refused(worker, came(1, StateRequest(0)), "not for it")
    refused(worker, came(1, State(0, 0, 4), torch.zeros(3)), "nobody has asked")
    refused(worker, came(7, Leaving(0)), "no peer")


def test_a_newcomer_says_each_thing_once_and_does_not_go_back():
    worker = worker_of("hop")
    worker.handle(PeerLost(2), 0.1)
    refused(worker, came(2, NEWCOMER), "no peer")
    worker.handle(computed(), 0.1)
    worker.handle(PeerFound(2), 0.2)
    refused(worker, came(2, Begins(9)), "begins")
    refused(worker, came(2, Token(1)), "before it has begun")
    worker.handle(came(2, NEWCOMER), 0.3)
    refused(worker, came(2, NEWCOMER), "another hello")
    refused(worker, came(2, Begins(0)), "before 2")
    worker.handle(came(2, Begins(4)), 0.3)
    refused(worker, came(2, Begins(5)), "begins")
    refused(worker, came(2, member(5)), "another hello")
    worker.handle(came(2, StateRequest(9)), 0.3)
    refused(worker, came(2, StateRequest(9)), "not for it")


def test_a_state_comes_from_the_sponsor_in_order_and_as_long_as_it_is():
    worker, _ = joining()
    good = state_of(worker, 4, torch.zeros(P))
    refused(worker, good[1], "part 1 of 4 where 0")
    refused(worker, came(2, State(4, 0, 4), torch.zeros(3)), "nobody has asked")
    refused(worker, came(1, State(3, 0, 4), torch.zeros(3)), "iteration 3")
    refused(worker, came(1, State(4, 0, 5), torch.zeros(3)), "part 0 of 5")
    refused(worker, came(1, State(4, 0, 4), torch.zeros(2)), "2 entries")
    refused(worker, came(1, State(4, 0, 4), torch.full((3,), float("nan"))), "no iterations")
    worker.handle(good[0], 3.0)
    refused(worker, good[0], "part 0 of 4 where 1")
    refused(worker, came(1, State(4, 1, 4), torch.zeros(P)), "6 entries")
    refused(worker, came(1, State(4, 1, 4), torch.tensor([-1.0])), "no iterations")
    worker.handle(good[1], 3.0)
    refused(worker, came(1, State(5, 2, 4), torch.zeros(P)), "iteration 5")
    worker.handle(good[2], 3.0)
    refused(worker, came(1, State(4, 3, 4), torch.zeros(2)), "2 entries")
    worker.handle(good[3], 3.0)
    refused(worker, good[3], "nobody has asked")


@pytest.mark.parametrize("fields", [(float("nan"), 0, 1), (4, 1, 1), (-1, 0, 1), (4, 0, 0)])
def test_a_state_of_no_iteration_or_part_is_none(fields):
    message = Message(1, State(*fields), (torch.zeros(3),))
    with pytest.raises(MalformedMessageError):
        decode(message.encode(), workers=3, parameters=P)


def server_of(on_loss="go_on", absent=(), **keys):
    replica = Replica(layout(P), torch.zeros(P), learning_rate=RATE)
    parameters = ParameterServerExchange.Parameters(**keys)
    return ParameterServer(3, 3, replica, 0, parameters, absent=frozenset(absent), on_loss=on_loss)


def pushed(sender, iteration, value=0.0):
    return came(sender, Push(iteration, 32, 0), torch.full((P,), value))


def test_a_server_goes_on_with_the_mean_of_those_who_are_there():
    server = server_of()
    server.handle(pushed(0, 0, 2.0), 1.0)
    server.handle(pushed(2, 0, 99.0), 1.0)
    assert not server.handle(PeerLost(2), 2.0)
    actions = server.handle(pushed(1, 0, 4.0), 3.0)
    assert [action.peer for action in actions] == [0, 1]
    torch.testing.assert_close(actions[0].message.tensors[0], torch.full((P,), -RATE * 3))


def test_a_server_counts_the_last_gradient_of_who_has_left():
    server = server_of(on_loss="wait")
    server.handle(pushed(2, 0, 6.0), 1.0)
    assert not server.handle(came(2, Leaving(1)), 1.0)
    server.handle(pushed(0, 0, 0.0), 1.0)
    actions = server.handle(pushed(1, 0, 0.0), 3.0)
    assert [action.peer for action in actions] == [0, 1]
    torch.testing.assert_close(actions[0].message.tensors[0], torch.full((P,), -RATE * 2))


def test_a_server_takes_a_worker_in_between_two_steps():
    server = server_of(absent=(2,))
    assert sent(server.handle(PeerFound(2), 1.0)) == [Hello(0, 0, 0.0, 0, True)]
    for sender in (0, 1):
        assert not server.handle(pushed(sender, 0, 3.0), 1.0)
    server.handle(came(2, NEWCOMER), 1.0)
    assert [action.peer for action in server.handle(came(2, Begins(1)), 2.0)] == [0, 1]
    (answer,) = server.handle(came(2, StateRequest(1)), 2.0)
    assert answer.message.body == State(1, 0, 1)
    torch.testing.assert_close(answer.message.tensors[0], torch.full((P,), -RATE * 3))
    for sender in (0, 1):
        assert not server.handle(pushed(sender, 1), 3.0)
    assert len(server.handle(pushed(2, 1), 3.0)) == 3


def test_nobody_says_to_a_server_what_is_not_its_to_say():
    server = server_of(absent=(2,))
    refused(server, pushed(2, 0), "not connected")
    refused(server, came(1, Begins(0)), "begins")
    refused(server, came(1, NEWCOMER), "another hello")
    server.handle(PeerFound(2), 1.0)
    refused(server, came(2, Begins(0)), "begins")
    refused(server, came(2, member(0, 0)), "takes no message")
    server.handle(came(2, NEWCOMER), 1.0)
    refused(server, came(2, NEWCOMER), "another hello")
    refused(server, came(2, StateRequest(0)), "not for it")
    server.handle(came(2, Begins(0)), 1.0)
    refused(server, came(2, Begins(0)), "begins")
    server.handle(came(2, StateRequest(0)), 1.0)
    refused(server, came(2, StateRequest(0)), "not for it")
    for sender in range(3):
        server.handle(pushed(sender, 0), 2.0)
    refused(server, pushed(1, 0), "over")


def test_who_is_there_cannot_be_found():
    for participant in (worker_of(), server_of()):
        with pytest.raises(LocalProtocolError, match="had not been lost"):
            participant.handle(PeerFound(1), 1.0)


def test_a_choice_that_knows_of_losses_only_gives_up_with_a_reason():
    class Forgetful(Choice):
        def lost(self, peer):
            return None

    worker = worker_of()
    worker.choices.exchange.__class__ = type("Forgetful", (type(worker.choices.exchange),), {"lost": Forgetful.lost})
    worker.handle(PeerLost(2), 0.1)
    worker.handle(PeerFound(2), 0.2)
    worker.handle(came(2, NEWCOMER), 0.3)
    (abort,) = worker.handle(came(2, Begins(4)), 0.3)
    assert isinstance(abort, Abort)
    assert "no method 'joined'" in abort.reason


# What makes systems learn

IN_STEP = [
    ({"name": "baseline"}, 1),
    ({"name": "baseline", "exchange": {"kind": "top_k", "density": 0.3}}, 1),
    ({"name": "baseline", "exchange": "dgc"}, 1),
    ({"name": "gaia", "exchange": {"threshold": 0}}, 1),
    ({"name": "hop", "synchronization": {"backup_workers": 0, "staleness": 0, "max_gap": 2}}, 1),
    ({"name": "parameter_server"}, 1),
    ({"name": "parameter_server", "topology": {"kind": "parameter_server", "hosts": [0, 1]}}, 1),
    ({"name": "local_sgd", "exchange": {"period": 3}}, 3),
    ({"name": "diloco", "exchange": {"period": 3}}, 3),
]
"""Systems whose workers all have the same parameters after every so many iterations."""


@settings(max_examples=100, deadline=None)
@given(
    system=st.sampled_from(IN_STEP),
    seed=st.integers(0, 2**16),
    comings=st.lists(st.tuples(st.integers(1, 3), st.floats(0, 6), st.floats(14, 20)), max_size=2),
    absent=st.sets(st.integers(1, 3), max_size=2),
    optimizer=st.sampled_from([{}, {"momentum": 0.9}, {"kind": "adam"}]),
)
def test_who_leaves_and_comes_back_has_what_all_others_have_to_the_bit(system, seed, comings, absent, optimizer):
    """Whoever comes has met all whose contributions still were under way."""
    kind, period = system
    world = World(
        kind,
        4,
        noise,
        seed=seed,
        iterations=15,
        absent=sorted(absent),
        on_loss="go_on",
        optimizer=optimizer,
        patient=True,
        delay=lambda random: random.uniform(0.1, 1.0),
    )
    for number in absent:
        world.happen(13, world.come, number)
    for number, goes, returns in comings:
        world.happen(goes, world.leave, number)
        world.happen(returns, world.come, number)
    world.run()
    for iteration in range(period, 16, period):
        first, *others = [log.ends[iteration] for log in world.logs if iteration in log.ends]
        assert all(torch.equal(first, each) for each in others)


def test_a_lost_and_found_workers_contributions_are_conserved():
    """What an exchange has not sent it keeps, whoever comes and goes meanwhile."""
    for exchange in (
        "partitions",
        {"kind": "top_k", "density": 0.3},
        "significance",
        {"kind": "max_n", "residual": "accumulate"},
    ):
        worker = worker_of({"name": "baseline", "exchange": exchange, "synchronization": "asynchronous"})
        worker.choices.synchronization.waits_for = lambda peer, iteration: False
        total = torch.zeros(P)
        gradients = torch.randn(8, P, generator=torch.Generator().manual_seed(3))
        for number, gradient in enumerate(gradients):
            if number == 3:
                worker.handle(PeerLost(2), float(number))
            if number == 5:
                worker.handle(PeerFound(2), float(number))
            actions = worker.handle(GradientReady(1.0, gradient, 1.0), number + 0.5)
            for message in messages(actions, 1):
                if isinstance(message.body, Contribution):
                    Update.of(message).add_to(total, 1.0)
        kept = flushed(worker.choices.exchange)
        torch.testing.assert_close(total + kept[1], gradients.sum(dim=0), rtol=0, atol=1e-5)


def test_parameters_are_mixed_with_those_who_count_and_the_mean_stays():
    """An edge to who has not begun weighs nothing at either end, so that the weights stay doubly stochastic."""
    world = World(
        {"name": "dpsgd", "topology": "all_to_all"},
        4,
        lambda worker, size: (1.0, torch.zeros(P)),
        iterations=30,
        on_loss="go_on",
    )
    for number, worker in enumerate(world.present):
        worker.replica.write(0, torch.full((P,), float(number)))
    world.happen(6, world.leave, 3)
    world.happen(14, world.come, 3)
    world.run()
    ends = torch.stack([worker.replica.parameters for worker in world.present])
    assert float(ends.std(dim=0).max()) < 1e-5
    assert 0 <= float(ends.mean()) <= 3
    assert world.logs[-1].joined is not None
