"""Parameter servers and membership, one event at a time."""

import torch

from dlion_sim.protocol.events import (
    PeerFound,
)
from dlion_sim.protocol.membership_messages import Begins, Leaving, StateRequest
from tests.protocol.churn import P
from tests.protocol.members import JOINING, RATE, came, member, pushed, refused, server_of


def test_a_server_counts_the_last_gradient_of_a_departed_worker():
    server = server_of(on_loss="wait")
    server.handle(pushed(2, 0, 6.0), 1.0)
    assert not server.handle(came(2, Leaving(1)), 1.0)
    server.handle(pushed(0, 0, 0.0), 1.0)
    actions = server.handle(pushed(1, 0, 0.0), 3.0)
    assert [action.peer for action in actions] == [0, 1]
    torch.testing.assert_close(actions[0].message.tensors[0], torch.full((P,), -RATE * 2))


def test_a_member_reconnects_to_a_server():
    """It has done all its iterations, of which there are two."""
    server = server_of(absent=(2,))
    server.handle(PeerFound(2), 1.0)
    assert not server.handle(came(2, member(2, 2)), 1.0)
    refused(server, came(2, member(2, 2)), "another hello")
    for iteration in range(2):
        assert not server.handle(pushed(0, iteration), 2.0)
        assert [action.peer for action in server.handle(pushed(1, iteration), 2.0)] == [0, 1]


def test_a_server_refuses_unexpected_messages():
    server = server_of(absent=(2,))
    refused(server, pushed(2, 0), "not connected")
    refused(server, came(1, Begins(0)), "begins")
    refused(server, came(1, JOINING), "another hello")
    server.handle(PeerFound(2), 1.0)
    refused(server, came(2, Begins(0)), "begins")
    server.handle(came(2, JOINING), 1.0)
    refused(server, came(2, JOINING), "another hello")
    refused(server, came(2, StateRequest(0)), "but is not joining")
    server.handle(came(2, Begins(0)), 1.0)
    refused(server, came(2, Begins(0)), "begins")
    server.handle(came(2, StateRequest(0)), 1.0)
    refused(server, came(2, StateRequest(0)), "but is not joining")
    for sender in range(3):
        server.handle(pushed(sender, 0), 2.0)
    refused(server, pushed(1, 0), "over")
