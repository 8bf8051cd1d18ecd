"""Workers and servers, and events for them by hand."""

import pickle

import pytest
import torch

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.events import (
    GradientReady,
    MessageArrived,
    PeerFound,
    Send,
    Started,
)
from dlion_sim.protocol.exchange.parameter_server import ParameterServerExchange, Push
from dlion_sim.protocol.membership_messages import Hello, State
from dlion_sim.protocol.messages import Contribution, MalformedMessageError, Message, decode
from dlion_sim.protocol.phases import Phase
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.worker import Worker
from tests.protocol.churn import P
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


JOINING = Hello(0, 0, 0.0, 0, False)


def sent(actions, peer=None):
    """The bodies of sent messages, to all peers or to one."""
    return [each.message.body for each in actions if isinstance(each, Send) and peer in (None, each.peer)]


def messages(actions, peer):
    return [each.message for each in actions if isinstance(each, Send) and each.peer == peer]


def at(worker, value):
    torch.testing.assert_close(worker.replica.parameters, torch.full((P,), value), rtol=1e-6, atol=1e-6)


def joining(system="baseline", **keys):
    """A joining worker with the hellos of 1, of iteration 4, and of 2, of iteration 3."""
    worker = worker_of(system, joining=True, **keys)
    assert worker.phase is Phase.JOINING
    for peer in (1, 2):
        assert sent(worker.handle(PeerFound(peer), 1.0)) == [JOINING]
    assert not worker.handle(came(1, member(4)), 2.0)
    return worker, worker.handle(came(2, member(3)), 2.0)


def state_of(worker, iteration, parameters, applied=(-1, -1, -1), peer=1):
    parts = [torch.tensor([each + 1.0 for each in applied]), torch.tensor([3.0]), parameters, torch.empty(0)]
    return [came(peer, State(iteration, part, len(parts)), tensor) for part, tensor in enumerate(parts)]


def state(participant):
    """Its state without the time of the last event."""
    if isinstance(participant, Worker):
        participant._training.now = 0.0
    return pickle.dumps(participant)


def refused(participant, event, match):
    decode(event.message.encode(), workers=9, parameters=P)
    before = state(participant)
    with pytest.raises(MalformedMessageError, match=match):
        participant.handle(event, 9.0)
    assert state(participant) == before


def server_of(on_loss="go_on", absent=(), **keys):
    replica = Replica(layout(P), torch.zeros(P), learning_rate=RATE)
    parameters = ParameterServerExchange.Parameters(**keys)
    return ParameterServer(3, 3, replica, 0, parameters, absent=frozenset(absent), on_loss=on_loss)


def pushed(sender, iteration, value=0.0):
    return came(sender, Push(iteration, 32, 0), torch.full((P,), value))
