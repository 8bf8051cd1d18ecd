"""How much of a message may be missing."""

import pytest
import torch

from dlion_sim.assembly import Setting
from dlion_sim.bounded_loss.bounds import Bounds
from dlion_sim.errors import InputError
from dlion_sim.protocol.exchange.pairwise import Swap
from dlion_sim.protocol.messages import Contribution, Message, Mixed
from dlion_sim.scenario import Dlcp, LossPhase, StageBounds
from tests.bounded_loss.made import WORKERS, dense, layout
from tests.simulation.scenarios import digits

SHAPE = layout(356 * 10, 356 * 20)
PACKET = 1424


def bound(dlcp, message, **keys):
    return Bounds(dlcp, SHAPE, WORKERS).of(message, **keys)


def test_all_packets_are_counted_together():
    found = bound(Dlcp(loss_bound=0.1), dense(SHAPE.size))
    assert found.allowed.tolist() == [3 * PACKET]
    assert (len(found.group), set(found.group)) == (30, {0})


@pytest.mark.parametrize(("part", "whole"), [(0.7, 7), (0.3, 3), (0.29, 2.9), (0.0, 0)])
def test_rounding_takes_no_packet_away(part, whole):
    assert bound(Dlcp(loss_bound=part), dense(356 * 10)).allowed == [int(whole * PACKET)]


def test_a_message_that_has_to_be_whole_lacks_nothing():
    assert bound(Dlcp(loss_bound=0.1), dense(SHAPE.size), whole=True).allowed.tolist() == [0]


def test_each_stage_has_its_bound():
    dlcp = Dlcp(loss_bound=StageBounds(push=0.1, mix=0.5))
    assert bound(dlcp, dense(356 * 10)).allowed.tolist() == [PACKET]
    assert bound(dlcp, dense(356 * 10, body=Mixed)).allowed.tolist() == [5 * PACKET]


def test_variables_are_counted_by_themselves_where_any_has_a_bound():
    found = bound(Dlcp(loss_bound=0.2, by_tensor={"1.weight": 0.5}), dense(SHAPE.size))
    assert found.allowed.tolist() == [2 * PACKET, 10 * PACKET]
    assert found.group.tolist() == [0] * 10 + [1] * 20


def test_the_longest_end_of_a_name_counts():
    dlcp = Dlcp(loss_bound=0.2, by_tensor={"weight": 0.5, "0.weight": 0.1})
    assert bound(dlcp, dense(SHAPE.size)).allowed.tolist() == [PACKET, 10 * PACKET]


def test_of_a_stretch_the_variables_that_it_has_are_counted():
    dlcp = Dlcp(by_tensor={"0.weight": 0.1, "1.weight": 0.5})
    found = bound(dlcp, dense(356 * 10, offset=356 * 12))
    assert found.allowed.tolist() == [5 * PACKET]
    assert set(found.group) == {0}


def test_where_a_stage_may_lose_nothing_no_variable_may():
    dlcp = Dlcp(loss_bound=StageBounds(mix=0.5), by_tensor={"weight": 0.5})
    assert bound(dlcp, dense(SHAPE.size)).allowed.tolist() == [0, 0]


def test_sparse_messages_are_counted_together():
    indices = torch.arange(SHAPE.size, dtype=torch.int32)
    message = Message(1, Contribution(0, 8), (indices, torch.ones(SHAPE.size)))
    assert bound(Dlcp(loss_bound=0.1, by_tensor={"weight": 0.5}), message).allowed.tolist() == [6 * PACKET]


def test_phases_are_of_the_message_s_iteration():
    phases = [LossPhase(since=2, factor=0.5), LossPhase(since=4, factor=2)]
    dlcp = Dlcp(loss_bound=0.2, phases=phases)
    allowed = [bound(dlcp, dense(356 * 10, iteration=each)).allowed[0] // PACKET for each in range(6)]
    assert allowed == [2, 2, 1, 1, 4, 4]
    by_tensor = Dlcp(loss_bound=0.2, by_tensor={"0.weight": 0.1}, phases=phases)
    assert (bound(by_tensor, dense(SHAPE.size, iteration=4)).allowed // PACKET).tolist() == [2, 8]
    swap = Message(0, Swap(answer=False), (torch.ones(SHAPE.size),))
    assert bound(dlcp, swap).allowed.tolist() == [6 * PACKET]


def test_an_unknown_variable_is_refused_before_anything_runs():
    with pytest.raises(InputError) as caught:
        Setting.of(digits("transport={kind: dlcp, by_tensor: {0.weights: 0.1}}"))
    assert str(caught.value).startswith(
        "transport.by_tensor.0.weights: the model has no such variable; allowed: 1.weight, 1.bias"
    )
