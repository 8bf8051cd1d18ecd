"""Direct knowledge transfer (oracle 7)."""

import pytest
import torch

from dlion_sim.protocol.events import GradientReady, MessageArrived, Send, Started
from dlion_sim.protocol.knowledge.direct import DirectKnowledgeTransfer, LossReport, WeightsRequest
from dlion_sim.protocol.knowledge.weight_exchange import WeightExchange
from dlion_sim.protocol.messages import MalformedMessageError, Message, Weights
from tests.protocol.joined import run, setup, workers_of

LOSSES = (0.5, 0.2, 0.9)


def transfer(**parameters):
    return {
        "name": "baseline",
        "synchronization": {"kind": "asynchronous", "send_buffer": 100},
        "knowledge_transfer": {"kind": "direct", "period": 2, **parameters},
    }


def after_a_round(**parameters):
    """Three workers at different weights, after the round at iteration 5 and a few steps that change nothing."""
    workers = workers_of(transfer(period=5, **parameters), [setup(index, iterations=9) for index in range(3)])
    for index, worker in enumerate(workers):
        worker.replica.parameters.fill_(float(index + 1))
    reports = run(workers, lambda worker, size: (LOSSES[worker.setup.worker], torch.zeros(6)))
    return [worker.replica.parameters for worker in workers], reports


def full(value):
    return torch.full((6,), value)


@pytest.mark.parametrize(
    ("parameters", "expected", "merged"),
    [
        ({"share": 1.0}, [2, 2, 2], [1, 0, 1]),
        ({"share": 0.75}, [1.75, 2, 2.25], [1, 0, 1]),
        ({"share": 0.0}, [1, 2, 3], [0, 0, 0]),
        ({"share": 1.0, "target": "best2worst"}, [1, 2, 2], [0, 0, 1]),
    ],
)
def test_a_share_moves_part_of_the_way_to_the_best_which_stays(parameters, expected, merged):
    weights, reports = after_a_round(**parameters)
    for found, value in zip(weights, expected, strict=True):
        torch.testing.assert_close(found, full(float(value)))
    assert [sum(report.merged for report in each) for each in reports] == merged


def one(worker=0, **parameters):
    (worker,) = workers_of(transfer(**parameters), [setup(worker)])
    worker.handle(Started(), 0.0)
    return worker


def iterate(worker, loss):
    return worker.handle(GradientReady(loss, torch.zeros(6), 1.0), 1.0)


def requests(actions):
    return [
        action.peer
        for action in actions
        if isinstance(action, Send) and isinstance(action.message.body, WeightsRequest)
    ]


def test_a_round_is_decided_once_when_all_have_reported():
    worker = one()
    iterate(worker, 0.5)
    reported = [a.peer for a in iterate(worker, 0.7) if isinstance(a, Send) and isinstance(a.message.body, LossReport)]
    assert reported == [1, 2]
    assert requests(worker.handle(MessageArrived(Message(1, LossReport(1, 0.4))), 2.0)) == []
    assert requests(worker.handle(MessageArrived(Message(2, LossReport(1, 0.3))), 2.0)) == [2]
    assert requests(worker.handle(MessageArrived(Message(1, LossReport(2, 0.1))), 2.0)) == []
    with pytest.raises(MalformedMessageError, match="round 2 after one of round 2"):
        worker.handle(MessageArrived(Message(1, LossReport(2, 0.1))), 2.0)


def test_a_round_compares_reports_of_that_round_only():
    """A loss of a period ago is no match for a new one: it would make everybody the best."""
    worker = one(worker=2)
    for loss in (0.9, 0.9):
        iterate(worker, loss)
    worker.handle(MessageArrived(Message(0, LossReport(1, 0.8))), 2.0)
    assert requests(worker.handle(MessageArrived(Message(1, LossReport(1, 0.7))), 2.0)) == [1]
    iterate(worker, 0.5)
    assert requests(iterate(worker, 0.5)) == [], "0.7 is older"
    worker.handle(MessageArrived(Message(1, LossReport(2, 0.6))), 2.0)
    assert requests(worker.handle(MessageArrived(Message(0, LossReport(2, 0.4))), 2.0)) == [0]


def test_reports_of_later_rounds_wait_for_theirs():
    worker = one()
    for number, loss in ((1, 0.8), (2, 0.1), (3, 0.3)):
        worker.handle(MessageArrived(Message(1, LossReport(number, loss))), 1.0)
    for number, loss in ((1, 0.2), (2, 0.4), (3, 0.4)):
        worker.handle(MessageArrived(Message(2, LossReport(number, loss))), 1.0)
    asked = [requests([*iterate(worker, 0.35), *iterate(worker, 0.35)]) for _ in range(3)]
    assert asked == [[2], [1], [1]]


def test_a_round_that_is_not_decided_when_the_next_one_opens_takes_older_reports():
    worker = one()
    iterate(worker, 0.9)
    iterate(worker, 0.9)
    worker.handle(MessageArrived(Message(1, LossReport(1, 0.7))), 2.0)
    iterate(worker, 0.6)
    assert requests(iterate(worker, 0.6)) == [1], "2 has never reported"
    worker.handle(MessageArrived(Message(2, LossReport(1, 0.5))), 2.0)
    worker.handle(MessageArrived(Message(1, LossReport(2, 0.7))), 2.0)
    iterate(worker, 0.4)
    assert requests(iterate(worker, 0.4)) == [2], "its report of round 1 has to do for round 2"


def test_ties_go_to_the_lowest_worker_and_nan_is_the_worst_loss():
    worker = one(worker=1)
    iterate(worker, 0.4)
    iterate(worker, 0.4)
    worker.handle(MessageArrived(Message(2, LossReport(1, float("nan")))), 2.0)
    assert requests(worker.handle(MessageArrived(Message(0, LossReport(1, 0.4))), 2.0)) == [0]


def test_a_report_averages_the_newest_losses():
    worker = one(loss_window=2, period=3)
    iterate(worker, 100.0)
    iterate(worker, 1.0)
    (report, _) = [
        a.message.body for a in iterate(worker, 2.0) if isinstance(a, Send) and isinstance(a.message.body, LossReport)
    ]
    assert report == LossReport(1, 1.5)


def test_requested_weights_are_a_snapshot_that_several_receivers_share():
    worker = one()
    worker.replica.parameters.fill_(7.0)
    (first,) = worker.handle(MessageArrived(Message(1, WeightsRequest())), 1.0)
    (second,) = worker.handle(MessageArrived(Message(2, WeightsRequest())), 1.0)
    assert (first.peer, second.peer) == (1, 2)
    assert isinstance(first.message.body, Weights)
    assert first.message.tensors[0] is second.message.tensors[0]
    iterate(worker, 1.0)
    worker.replica.parameters.fill_(0.0)
    assert torch.equal(first.message.tensors[0], full(7.0))


def test_weight_exchange_averages_what_arrives_together():
    (worker,) = workers_of(
        {**transfer(), "knowledge_transfer": {"kind": "weight_exchange", "period": 2}}, [setup(workers=4)]
    )
    worker.handle(Started(), 0.0)
    worker.replica.parameters.fill_(8.0)
    assert not [a for a in iterate(worker, 1.0) if isinstance(a, Send) and isinstance(a.message.body, Weights)]
    for peer in (1, 2, 3):
        worker.handle(MessageArrived(Message(peer, Weights(2), (full(4.0 * (peer - 1)),))), 1.0)
    sent = [a for a in iterate(worker, 1.0) if isinstance(a, Send) and isinstance(a.message.body, Weights)]
    torch.testing.assert_close(worker.replica.parameters, full((8 + 0 + 4 + 8) / 4))
    assert [a.peer for a in sent] == [1, 2, 3]
    torch.testing.assert_close(sent[0].message.tensors[0], full(5.0))


def test_a_worker_that_skips_the_end_of_a_period_reports_at_its_next_iteration():
    transfer = DirectKnowledgeTransfer(DirectKnowledgeTransfer.Parameters(period=4), setup())
    rounds = []
    for iterations in (1, 2, 3, 6, 7, 8, 9, 17):  # Hop's stragglers skip some.
        sent = transfer.stepped(iterations, 1.0)
        rounds += [(iterations, send.message.body.round) for send in sent if send.peer == 1]
    assert rounds == [(6, 1), (8, 2), (17, 4)]


def test_a_worker_that_joins_waits_for_the_end_of_its_first_period():
    transfer = WeightExchange(WeightExchange.Parameters(period=4), setup())
    assert [bool(transfer.stepped(iterations, 1.0)) for iterations in (10, 11, 13, 14, 16)] == [0, 0, 1, 0, 1]
