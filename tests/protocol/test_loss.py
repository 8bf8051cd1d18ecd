"""A lost peer: tolerant systems continue without it, others abort with a reason."""

import pytest
import torch

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.events import Abort, MessageArrived, PeerLost, Send
from dlion_sim.protocol.exchange.parameter_server import ParameterServerExchange, Push
from dlion_sim.protocol.knowledge.direct import WeightsRequest
from dlion_sim.protocol.messages import Contribution, Message
from dlion_sim.protocol.phases import Phase
from dlion_sim.protocol.server import ParameterServer
from tests.protocol.joined import layout, noisy, random_delays, run, setup, team, workers_of

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
    {"name": "dpsgd", "topology": "all_to_all"},
    "ring_allreduce",
    "power_sgd",
    "local_sgd",
    {"name": "local_sgd", "exchange": {"period": 3, "route": "ring"}},
    {"name": "diloco", "exchange": {"period": 3, "precision": "fp16"}},
    "sparta",
    {"name": "streaming_diloco", "exchange": {"period": 4, "delay": 1}},
    {"name": "sparse_loco", "exchange": {"period": 3}},
    "gossipgrad",
    "demo",
    "sgp",
    {"name": "noloco", "exchange": {"period": 3}},
    {"name": "moshpit", "exchange": {"period": 3}},
    {"name": "hop", "synchronization": {"backup_workers": 0}},
]


AT = (0.0, 2.0, 10.0, 20.0)
"""Where the loss on each worker's data is least: at 4 on that of the first three together, at 8 on that of all four."""


def pull(worker, batch_size):
    """A loss that is least at the worker's place in AT, and its gradient."""
    away = worker.replica.parameters - AT[worker.setup.worker]
    return float(away.square().mean()) / 2, away


def even_cost(worker, batch_size):
    """Seconds of a batch, on everyone."""
    return 0.01 + 0.001 * batch_size


def cost(worker, batch_size):
    """Seconds of a batch: worker 2 is half as fast as the others."""
    return even_cost(worker, batch_size) * (2 if worker.setup.worker == 2 else 1)


def composed(system):
    return system if isinstance(system, dict) else {"name": system}


def survivors(system, count=4, deaths=(3,), iterations=20):
    workers = team(composed(system), count, iterations=iterations)
    reports = run(workers, noisy, deaths=dict.fromkeys(deaths, 5))
    return [(worker, reports[index]) for index, worker in enumerate(workers) if index not in deaths]


@pytest.mark.parametrize("system", TOLERANT, ids=str)
def test_tolerant_systems_continue_to_the_end(system):
    for worker, reports in survivors(system):
        assert worker.phase is Phase.STOPPED
        assert reports[-1].iteration == worker.iteration == 20
        assert 3 not in worker.setup.peers


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("system", TOLERANT, ids=str)
def test_remaining_workers_learn_from_each_other_only(system, seed):
    """Alone each worker would converge to its own minimum, and with the lost one all to 8."""
    workers = team(composed(system), 4)
    run(workers, pull, even_cost, deaths={3: 5}, delays=random_delays(seed), most=4000)
    for worker in workers[:3]:
        assert worker.iteration > 100
        torch.testing.assert_close(worker.replica.parameters, torch.full((6,), 4.0), atol=1.9, rtol=0)


@pytest.mark.parametrize(
    ("system", "bound"),
    [
        ({"name": "hop", "synchronization": {"staleness": 2, "backup_workers": 1}}, 3),
        ({"name": "hop", "synchronization": {"staleness": 9, "backup_workers": 1, "max_gap": 2}}, 2),
        ({"name": "local_sgd", "synchronization": {**BACKUP, "staleness": 0}, "exchange": {"period": 1}}, 1),
    ],
    ids=str,
)
def test_remaining_workers_wait_for_each_other(system, bound):
    """None leads another by more than the bound; the last one is three times as slow as the first."""
    workers, leads = team(system, 4), []

    def note(worker, batch_size):
        if 3 not in worker.setup.peers and worker.setup.worker != 3:
            leads.append(worker.iteration - min(each.iteration for each in workers[:3]))
        return pull(worker, batch_size)

    run(workers, note, deaths={3: 5}, delays=random_delays(1, unequal=True), most=3000)
    assert len(leads) > 150
    assert max(leads) == bound


@pytest.mark.parametrize("iterations", [0, 5], ids=["before anything is measured", "later"])
def test_remaining_workers_split_the_whole_global_batch(iterations):
    system = {"name": "dlion", "synchronization": "asynchronous", "batching": {"growth": "none"}}
    workers = team(system, 4, iterations=40)
    reports = run(workers, noisy, cost, deaths={3: iterations}, delays=random_delays(1))
    assert reports[0][-1].global_batch_size == 4 * 32
    sizes = [each[-1].batch_size for each in reports[:3]]
    assert sizes == [53, 53, 22], "which take 63, 63 and 64 ms"


def test_remaining_workers_pull_from_the_best_of_them():
    """The lost worker had the least loss, and was asked until then."""
    losses = (0.5, 0.2, 0.9, 0.1)
    system = {**ASYNCHRONOUS, "knowledge_transfer": {"kind": "direct", "period": 3, "share": 1.0}}
    workers, asked = team(system, 4, iterations=40), []
    for index, worker in enumerate(workers):
        worker.replica.parameters.fill_(float(index))
        worker.handle = noting_requests(worker, asked)
    reports = run(
        workers,
        lambda worker, size: (losses[worker.setup.worker], torch.zeros(6)),
        deaths={3: 10},
        delays=random_delays(1),
    )
    assert {best for iteration, best in asked if iteration <= 8} == {3}
    assert {best for iteration, best in asked if iteration >= 20} == {1}
    for index in (0, 2):
        assert sum(report.merged for report in reports[index][20:]) >= 4
        assert torch.equal(workers[index].replica.parameters, workers[1].replica.parameters)


def noting_requests(worker, asked):
    """Its `handle`, which adds (iterations done, whom it asks for weights) to `asked`."""
    handle = worker.handle

    def noting(event, now):
        actions = handle(event, now)
        asked.extend(
            (worker.iteration, action.peer)
            for action in actions
            if isinstance(action, Send) and isinstance(action.message.body, WeightsRequest)
        )
        return actions

    return noting


@pytest.mark.parametrize("system", DEPENDENT, ids=str)
def test_other_systems_abort_with_a_reason(system):
    for worker, reports in survivors(system):
        assert worker.phase is Phase.STOPPED
        assert isinstance(reports[-1], Abort)
        assert worker.iteration <= 12


def test_no_more_may_be_lost_than_there_are_backup_workers():
    system = {"name": "hop", "synchronization": {"backup_workers": 1, "staleness": 2}}
    for _, reports in survivors(system, count=5, deaths=(3, 4)):
        assert reports[-1] == Abort("more peers are lost (2) than there are backup workers (1)")


def arrived(sender, iteration=0, value=0.0, body=Contribution):
    return MessageArrived(Message(sender, body(iteration, 32), (torch.full((6,), value),)))


def test_a_loss_after_the_last_iteration_has_no_effect():
    workers = workers_of({"name": "baseline"}, [setup(index, 2, iterations=2) for index in range(2)])
    run(workers, noisy)
    assert workers[0].handle(PeerLost(1), 9.0) == []


@pytest.mark.parametrize("asynchronous", [False, True])
def test_only_an_asynchronous_server_continues_after_a_loss(asynchronous):
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
