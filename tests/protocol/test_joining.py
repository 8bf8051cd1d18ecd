"""Joining, one event at a time."""

import pytest
import torch

from dlion_sim.protocol.events import (
    Joined,
    PeerFound,
    PeerLost,
)
from dlion_sim.protocol.membership_messages import Begins, NotBefore, State, StateRequest
from dlion_sim.protocol.messages import decode
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
    messages,
    sent,
    state_of,
    worker_of,
)


def test_a_joining_worker_counts_from_its_first_contribution_on_even_before_its_announcement():
    worker = worker_of()
    worker.handle(PeerLost(2), 0.1)
    worker.handle(PeerFound(2), 0.2)
    worker.handle(contributed(2, 1, 8.0), 0.3)
    for iteration in range(2):
        worker.handle(contributed(1, iteration, 3.0), 1.0)
        worker.handle(computed(1.0), 1.0)
    at(worker, -RATE * (1 + 3) / 2 - RATE * (1 + 3 + 8) / 3)


def test_contributions_that_are_in_the_state_are_not_applied_again():
    worker, actions = joining({"name": "baseline", "synchronization": "bounded_staleness"})
    assert sent(actions, 1) == [Begins(4), StateRequest(4)]
    for iteration in (3, 4, 5):
        worker.handle(contributed(2, iteration, iteration * 10.0), 3.0)
    for part in state_of(worker, 4, torch.zeros(P), applied=(-1, -1, 4)):
        worker.handle(part, 4.0)
    worker.handle(computed(0.0), 6.0)
    at(worker, -RATE * 50 / 3)


def test_contributions_that_the_state_lacks_are_applied_though_they_are_of_before_the_first_iteration():
    """A member may be behind, and its contributions arrive while the state is under way."""
    worker, actions = joining({"name": "baseline", "synchronization": "bounded_staleness"})
    assert sent(actions, 2) == [Begins(4)]
    for iteration in (3, 4):
        worker.handle(contributed(2, iteration, iteration * 10.0), 3.0)
    for part in state_of(worker, 4, torch.zeros(P), applied=(-1, -1, 2)):
        worker.handle(part, 4.0)
    worker.handle(computed(0.0), 6.0)
    at(worker, -RATE * (30 + 40) / 3)


def test_a_sponsor_that_has_just_joined_claims_no_contributions_that_are_still_to_come():
    worker, _ = joining({"name": "baseline", "synchronization": "bounded_staleness"})
    for part in state_of(worker, 4, torch.zeros(P), applied=(-1, -1, 1)):
        worker.handle(part, 4.0)
    worker.handle(PeerLost(1), 5.0)
    worker.handle(PeerFound(1), 5.1)
    for body in (JOINING, Begins(5), StateRequest(5)):
        worker.handle(came(1, body), 5.2)
    first, *_ = [each for each in messages(worker.handle(computed(0.0), 6.0), 1) if isinstance(each.body, State)]
    assert first.tensors[0].tolist() == [0, 5, 3], "it waits for the contribution 3 of worker 2"


def test_without_waiting_a_joining_worker_begins_with_its_sponsors_iteration():
    worker, actions = joining("ako")
    assert sent(actions) == [StateRequest(4)]
    actions = [each for part in state_of(worker, 6, torch.zeros(P)) for each in worker.handle(part, 4.0)]
    assert actions[0] == Joined(6, 1, 4.0)
    assert [sent(actions, peer)[:1] for peer in (1, 2)] == [[Begins(6)]] * 2


def test_members_that_are_behind_do_not_wait_for_who_begins_later():
    """Where members wait for some of their peers only, which may be past an iteration when they send their state."""
    worker = worker_of("gossipgrad", joining=True)
    for peer in (1, 2):
        worker.handle(PeerFound(peer), 1.0)
    worker.handle(came(1, member(4)), 2.0)
    actions = worker.handle(came(2, member(6)), 2.0)
    assert sent(actions, 1) == [NotBefore(6)]
    assert sent(actions, 2) == [StateRequest(6)]
    actions = [each for part in state_of(worker, 7, torch.zeros(P), peer=2) for each in worker.handle(part, 4.0)]
    assert [sent(actions, peer)[:1] for peer in (1, 2)] == [[Begins(7)]] * 2


@pytest.mark.parametrize(
    ("sponsor", "chosen"), [("nearest", 1), ("least_loaded", 2), ("best", 2)], ids=["nearest", "least_loaded", "best"]
)
def test_a_sponsor_is_chosen_by_the_setting(sponsor, chosen):
    worker = worker_of({"name": "baseline", "synchronization": "bounded_staleness"}, joining=True)
    object.__setattr__(worker.setup, "sponsor", sponsor)
    for peer in (1, 2):
        worker.handle(PeerFound(peer), 1.0)
    worker.handle(came(1, member(4, loss=float("nan"), queued=9)), 2.0)
    actions = worker.handle(came(2, member(3, loss=0.5, queued=5)), 2.0)
    assert StateRequest(4) in sent(actions, chosen)


def test_a_member_that_is_too_far_behind_is_no_sponsor():
    worker = worker_of({"name": "hop", "synchronization": {"staleness": 2}}, joining=True)
    for peer in (1, 2):
        worker.handle(PeerFound(peer), 1.0)
    worker.handle(came(1, member(4)), 2.0)
    actions = worker.handle(came(2, member(90)), 2.0)
    assert sent(actions, 1) == [Begins(90)]
    assert sent(actions, 2) == [Begins(90), StateRequest(90)]


def test_a_joining_worker_waits_for_reachable_peers_only():
    worker = worker_of(joining=True, absent=(2,))
    worker.handle(PeerFound(1), 1.0)
    assert sent(worker.handle(came(1, member(4)), 2.0)) == [Begins(4), StateRequest(4)]
    worker = worker_of(joining=True)
    worker.handle(PeerFound(1), 1.0)
    assert not sent(worker.handle(came(1, member(4)), 2.0))
    assert sent(worker.handle(PeerLost(2), 3.0)) == [Begins(4), StateRequest(4)]


def test_a_sponsor_sends_its_state_as_soon_as_it_has_reached_the_iteration():
    worker = worker_of()
    worker.handle(PeerLost(2), 0.1)
    worker.handle(PeerFound(2), 0.2)
    worker.handle(came(2, JOINING), 0.3)
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
