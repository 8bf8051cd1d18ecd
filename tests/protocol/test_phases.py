"""The events that are possible in each phase, by the table."""

import pytest
import torch

from dlion_sim.protocol.events import GradientReady, LocalProtocolError, MessageSent, ProfileReady, Started
from dlion_sim.protocol.exchange.parameter_server import ParameterServerExchange
from dlion_sim.protocol.phases import TRANSITIONS, Phase
from dlion_sim.protocol.server import ParameterServer
from tests.protocol.joined import setup, workers_of

OWN = {
    Started: Started(),
    ProfileReady: ProfileReady(((8, 0.1), (16, 0.2))),
    GradientReady: GradientReady(1.0, torch.zeros(6), 1.0),
}
"""An event of each kind that leads from one phase to another."""


def worker_in(phase):
    """A worker in that phase."""
    (worker,) = workers_of({"name": "dlion"}, [setup()])
    if phase is not Phase.READY:
        worker.handle(OWN[Started], 0.0)
    if phase in (Phase.COMPUTING, Phase.WAITING):
        worker.handle(OWN[ProfileReady], 0.0)
    if phase is Phase.WAITING:
        for _ in range(6):  # As many as the bound lets it lead by, and one more.
            worker.handle(OWN[GradientReady], 1.0)
    assert worker.phase is phase
    return worker


@pytest.mark.parametrize("phase", [Phase.READY, Phase.PROFILING, Phase.COMPUTING, Phase.WAITING])
@pytest.mark.parametrize("event", OWN, ids=lambda event: event.__name__)
def test_an_impossible_event_is_a_drivers_error_and_changes_nothing(phase, event):
    worker = worker_in(phase)
    before = worker.iteration
    if event in TRANSITIONS[phase]:
        worker.handle(OWN[event], 2.0)
        return
    with pytest.raises(LocalProtocolError, match=f"{event.__name__}.* a worker that is {phase.value}"):
        worker.handle(OWN[event], 2.0)
    assert (worker.phase, worker.iteration) == (phase, before)


def test_only_queued_messages_can_have_been_sent():
    worker = worker_in(Phase.READY)
    with pytest.raises(LocalProtocolError, match="none was queued"):
        worker.handle(MessageSent(1, 10), 0.0)


@pytest.mark.parametrize("event", [OWN[GradientReady], OWN[ProfileReady]], ids=["gradient", "profile"])
def test_a_server_computes_nothing(event):
    server = ParameterServer(3, 3, setup().replica, 0, ParameterServerExchange.Parameters())
    with pytest.raises(LocalProtocolError, match="server"):
        server.handle(event, 0.0)
