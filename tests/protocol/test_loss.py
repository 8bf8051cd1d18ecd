"""What a lost peer means to each system: who can does without it, who cannot says so at once."""

import pytest
import torch

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.events import Abort, GradientReady, MessageArrived, MessageSent, PeerLost, Send, Started
from dlion_sim.protocol.exchange import ParameterServerExchange
from dlion_sim.protocol.messages import Announcement, Contribution, Message, Push
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.worker import Phase
from tests.protocol.joined import layout, run, setup, workers_of

ASYNCHRONOUS = {"name": "baseline", "synchronization": {"kind": "asynchronous", "send_buffer": 1}}
BACKUP = {"kind": "bounded_staleness", "staleness": 1, "backup_workers": 1}
TOLERANT = [
    ASYNCHRONOUS,
    "ako",
    "adpsgd",
    {"name": "dlion", "synchronization": "asynchronous", "knowledge_transfer": {"period": 3}},
    {"name": "dlion", "synchronization": BACKUP, "exchange": {"residual": "accumulate"}},
    {"name": "gaia", "synchronization": BACKUP, "exchange": {"barrier": "selective"}},
    {"name": "hop", "synchronization": {"backup_workers": 1, "max_gap": 2}},
    {"name": "hop", "synchronization": {"staleness": 3}, "exchange": {"kind": "parameters", "staleness": 3}},
    {"name": "local_sgd", "exchange": {"period": 2}, "synchronization": BACKUP},
]
DEPENDENT = [
    "baseline",
    "gaia",
    "dlion",
    "dpsgd",
    "ring_allreduce",
    "local_sgd",
    {"name": "hop", "synchronization": {"backup_workers": 0}},
]


def noise(worker, batch_size):
    generator = torch.Generator().manual_seed(1000 * worker.setup.worker + worker.iteration)
    return 1.0, torch.randn(6, generator=generator)


def composed(system):
    return system if isinstance(system, dict) else {"name": system}


def survivors(system, count=4, deaths=(3,), iterations=20):
    workers = workers_of(composed(system), [setup(index, count, iterations=iterations) for index in range(count)])
    reports = run(workers, noise, deaths=dict.fromkeys(deaths, 5))
    return [(worker, reports[index]) for index, worker in enumerate(workers) if index not in deaths]


@pytest.mark.parametrize("system", TOLERANT, ids=str)
def test_who_can_do_without_a_peer_goes_on_to_the_end(system):
    for worker, reports in survivors(system):
        assert worker.phase is Phase.STOPPED
        assert reports[-1].iteration == worker.iteration == 20
        assert 3 not in worker.setup.peers


@pytest.mark.parametrize("system", DEPENDENT, ids=str)
def test_who_cannot_says_why_at_once(system):
    for worker, reports in survivors(system):
        assert worker.phase is Phase.STOPPED
        assert isinstance(reports[-1], Abort)
        assert worker.iteration <= 12


def test_no_more_may_be_lost_than_there_are_backup_workers():
    system = {"name": "hop", "synchronization": {"backup_workers": 1, "staleness": 2}}
    for _, reports in survivors(system, count=5, deaths=(3, 4)):
        assert reports[-1] == Abort("more peers are lost (2) than there are backup workers (1)")


def test_a_lost_peer_uses_up_a_backup_worker():
    """Of three peers one is lost: the other two are waited for, where any one of three could have stayed behind."""
    (worker,) = workers_of(
        {"name": "hop", "synchronization": {"staleness": 0, "backup_workers": 1}}, [setup(workers=4)]
    )
    worker.handle(Started(), 0.0)
    worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 1.0)
    worker.handle(PeerLost(3), 2.0)
    worker.handle(arrived(1), 3.0)
    assert worker.iteration == 0
    worker.handle(arrived(2), 4.0)
    assert worker.iteration == 1


def arrived(sender, iteration=0, value=0.0):
    return MessageArrived(Message(sender, Contribution(iteration, 32), (torch.full((6,), value),)))


def test_a_full_queue_to_a_lost_peer_holds_nobody_up():
    (worker,) = workers_of(ASYNCHRONOUS, [setup(workers=3)])
    worker.handle(Started(), 0.0)
    for _ in range(2):
        worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 1.0)
        worker.handle(MessageSent(1, 100), 1.0)
    assert (worker.iteration, worker.phase) == (1, Phase.WAITING), "two messages are queued to 2"
    actions = worker.handle(PeerLost(2), 2.0)
    assert worker.iteration == 2
    assert not [action for action in actions if isinstance(action, Send)]
    assert worker.handle(MessageSent(2, 100), 3.0) == [], "what was queued is gone, too"
    sends = [action.peer for action in worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 4.0)[:1]]
    assert sends == [1]


def test_the_update_is_the_mean_over_those_who_are_left():
    (worker,) = workers_of({**ASYNCHRONOUS, "synchronization": "asynchronous"}, [setup(workers=3)])
    worker.handle(Started(), 0.0)
    worker.handle(arrived(1, value=2.0), 0.5)
    worker.handle(arrived(2, value=100.0), 0.5)
    worker.handle(PeerLost(2), 0.6)
    worker.handle(GradientReady(1.0, torch.full((6,), 4.0), 1.0), 1.0)
    torch.testing.assert_close(worker.replica.parameters, torch.full((6,), -0.1 * (2 + 4) / 2))


def test_parameters_are_mixed_with_those_who_are_left():
    system = {"name": "dpsgd", "synchronization": {"kind": "hop", "backup_workers": 1}}
    (worker,) = workers_of(system, [setup(workers=3, mixing={1: 0.25, 2: 0.25})])
    worker.handle(Started(), 0.0)
    worker.handle(PeerLost(2), 0.5)
    worker.handle(arrived(1, value=8.0), 0.6)
    worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 1.0)
    torch.testing.assert_close(worker.replica.parameters, torch.full((6,), 0.25 * 8))


def test_what_a_lost_peer_has_announced_is_not_waited_for():
    system = {"name": "gaia", "synchronization": "asynchronous", "exchange": {"barrier": "selective"}}
    (worker,) = workers_of(system, [setup(workers=3)])
    worker.handle(Started(), 0.0)
    indices = torch.tensor([1], dtype=torch.int32)
    worker.handle(MessageArrived(Message(2, Announcement(0), (indices,))), 0.5)
    worker.handle(GradientReady(1.0, torch.ones(6), 1.0), 1.0)
    assert worker.iteration == 0
    worker.handle(PeerLost(2), 2.0)
    assert worker.iteration == 1


def test_an_answer_that_will_never_come_is_not_waited_for():
    (worker,) = workers_of({"name": "adpsgd"}, [setup(workers=2, side=0)])
    worker.handle(Started(), 0.0)
    worker.handle(GradientReady(1.0, torch.ones(6), 1.0), 1.0)
    assert worker.iteration == 0
    worker.handle(PeerLost(1), 2.0)
    torch.testing.assert_close(worker.replica.parameters, torch.full((6,), -0.1))


def test_who_has_done_its_part_loses_nothing():
    workers = workers_of({"name": "baseline"}, [setup(index, 2, iterations=2) for index in range(2)])
    run(workers, noise)
    assert workers[0].handle(PeerLost(1), 9.0) == []


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_server_goes_on_only_if_it_waits_for_nobody(asynchronous):
    server = ParameterServer(
        2,
        2,
        Replica(layout(6), torch.zeros(6), learning_rate=0.1),
        0,
        ParameterServerExchange.Parameters(asynchronous=asynchronous),
    )
    actions = server.handle(PeerLost(1), 1.0)
    assert [type(action) for action in actions] == ([] if asynchronous else [Abort])
    if asynchronous:
        push = Message(0, Push(0, 32, 0), (torch.ones(6),))
        assert [action.peer for action in server.handle(MessageArrived(push), 2.0)] == [0]


def test_a_worker_needs_every_server():
    system = {"name": "parameter_server", "synchronization": "asynchronous", "topology": {"kind": "parameter_server"}}
    (worker,) = workers_of(system, [setup(workers=2, mixing={2: 1.0})])
    worker.handle(Started(), 0.0)
    assert worker.handle(PeerLost(2), 1.0) == [Abort("a part of the parameters is lost with its server")]
