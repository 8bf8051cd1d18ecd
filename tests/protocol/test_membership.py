"""Membership, one event at a time: losses, leaves, and invalid messages."""

import pytest
import torch

from dlion_sim.protocol.choices import Choice
from dlion_sim.protocol.events import (
    Abort,
    Leave,
    LeaveCompleted,
    LocalProtocolError,
    MessageSent,
    PeerFound,
    PeerLost,
)
from dlion_sim.protocol.membership_messages import Begins, Leaving, NotBefore, State, StateRequest
from dlion_sim.protocol.messages import Contribution, MalformedMessageError, Message, decode
from dlion_sim.protocol.phases import Phase
from dlion_sim.protocol.synchronization.policies import Token
from tests.protocol.churn import P
from tests.protocol.members import (
    JOINING,
    RATE,
    at,
    came,
    computed,
    contributed,
    joining,
    member,
    refused,
    sent,
    server_of,
    state_of,
    worker_of,
)

# Failures before, during and after sending: means are over the counting workers, exactly.


@pytest.mark.parametrize(
    ("events", "mean"),
    [
        ([PeerLost(2), contributed(1, 0, 2.0), computed(4.0)], (4 + 2) / 2),
        ([contributed(2, 0, 100.0), computed(4.0), PeerLost(2), contributed(1, 0, 2.0)], (4 + 2) / 2),
        ([contributed(1, 0, 2.0), computed(4.0), PeerLost(2)], (4 + 2) / 2),
        ([contributed(1, 0, 2.0), contributed(2, 0, 3.0), computed(4.0), PeerLost(2)], (4 + 2 + 3) / 3),
    ],
    ids=["before it sends", "during the wait for others", "during the wait for it", "after the update"],
)
def test_a_peer_counts_up_to_its_failure(events, mean):
    worker = worker_of()
    for time, event in enumerate(events, start=1):
        worker.handle(event, float(time))
    assert worker.iteration == 1
    at(worker, -RATE * mean)


def test_a_leaving_peer_counts_up_to_its_last_contribution():
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


def test_messages_of_departed_peers_are_ignored():
    worker = worker_of()
    worker.handle(came(2, Leaving(0)), 0.5)
    for message in (contributed(2, 0, 9.0), came(2, Token(1)), came(2, member(3))):
        assert worker.handle(message, 0.6) == []


# Leaving


def test_a_leaving_worker_sends_its_gradient_and_then_its_leave():
    worker = worker_of()
    assert worker.handle(Leave(), 0.5) == []
    actions = worker.handle(computed(), 1.0)
    assert [type(body) for body in sent(actions, 1)] == [Contribution, Leaving]
    assert Leaving(1) in sent(actions, 2)
    assert worker.phase is Phase.LEAVING
    for peer in (1, 2):
        for _ in range(2):
            last = worker.handle(MessageSent(peer, 60), 2.0)
    assert last == [LeaveCompleted()]
    assert worker.handle(contributed(1, 0), 3.0) == []


def test_a_gradient_that_exceeds_the_deadline_is_abandoned():
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


def test_a_waiting_or_stopped_worker_leaves_at_once():
    worker = worker_of()
    worker.handle(computed(), 1.0)
    assert sent(worker.handle(Leave(), 1.5)) == [Leaving(1)] * 2
    assert sent(worker.handle(PeerFound(5), 1.6)) == [Leaving(0)]
    alone = worker_of(iterations=0)
    assert alone.phase is Phase.STOPPED
    assert sent(alone.handle(Leave(), 1.0)) == [Leaving(0)] * 2


# Invalid messages


def test_members_from_the_start_send_no_messages_of_joining():
    worker = worker_of()
    refused(worker, came(1, member(3)), "another hello")
    refused(worker, came(1, JOINING), "another hello")
    refused(worker, came(1, Begins(5)), "is not joining")
    refused(worker, came(1, NotBefore(5)), "is not joining")
    refused(worker, came(1, StateRequest(0)), "but is not joining")
    refused(worker, came(1, State(0, 0, 4), torch.zeros(3)), "was not requested")
    refused(worker, came(7, Leaving(0)), "no peer")


def test_a_joining_worker_sends_each_message_once():
    worker = worker_of("hop")
    worker.handle(PeerLost(2), 0.1)
    refused(worker, came(2, JOINING), "no peer")
    worker.handle(computed(), 0.1)
    worker.handle(PeerFound(2), 0.2)
    refused(worker, came(2, Begins(9)), "is not joining")
    refused(worker, came(2, Token(1)), "before its first iteration")
    worker.handle(came(2, JOINING), 0.3)
    refused(worker, came(2, JOINING), "another hello")
    refused(worker, came(2, Begins(0)), "before 2")
    worker.handle(came(2, NotBefore(3)), 0.3)
    refused(worker, came(2, Begins(2)), "before 3")
    worker.handle(came(2, Begins(4)), 0.3)
    refused(worker, came(2, Begins(5)), "is not joining")
    refused(worker, came(2, NotBefore(5)), "is not joining")
    refused(worker, came(2, member(5)), "another hello")
    worker.handle(came(2, StateRequest(9)), 0.3)
    refused(worker, came(2, StateRequest(9)), "but is not joining")


def test_parts_of_a_state_arrive_in_order_and_of_the_right_length():
    worker, _ = joining()
    good = state_of(worker, 4, torch.zeros(P))
    refused(worker, good[1], "part 1 of 4 where 0")
    refused(worker, came(2, State(4, 0, 4), torch.zeros(3)), "was not requested")
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
    refused(worker, good[3], "was not requested")


@pytest.mark.parametrize("fields", [(float("nan"), 0, 1), (4, 1, 1), (-1, 0, 1), (4, 0, 0)])
def test_a_state_without_iteration_or_part_is_malformed(fields):
    message = Message(1, State(*fields), (torch.zeros(3),))
    with pytest.raises(MalformedMessageError):
        decode(message.encode(), workers=3, parameters=P)


def test_a_connected_peer_cannot_be_found():
    for participant in (worker_of(), server_of()):
        with pytest.raises(LocalProtocolError, match="had not been lost"):
            participant.handle(PeerFound(1), 1.0)


def test_a_choice_with_lost_but_without_joined_aborts():
    class Forgetful(Choice):
        def lost(self, peer):
            return None

    worker = worker_of()
    worker.choices.exchange.__class__ = type("Forgetful", (type(worker.choices.exchange),), {"lost": Forgetful.lost})
    worker.handle(PeerLost(2), 0.1)
    worker.handle(PeerFound(2), 0.2)
    worker.handle(came(2, JOINING), 0.3)
    (abort,) = worker.handle(came(2, Begins(4)), 0.3)
    assert isinstance(abort, Abort)
    assert "none 'joined'" in abort.reason
