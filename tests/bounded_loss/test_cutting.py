"""Messages cut into packets, held against a plain definition."""

from zlib import crc32

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.bounded_loss.cutting import PAYLOAD, Cutter, is_cut, packets, payloads, starts
from dlion_sim.protocol.batching.weighted_dynamic import ComputeProfile
from dlion_sim.protocol.messages import Contribution, Message, Mixed, Weights
from dlion_sim.scenario import Dlcp, Reliable
from tests.bounded_loss.made import WORKERS, dense, layout, layouts, messages


def plainly_cut(message, shape, dlcp, priorities):
    """For each packet: payload, variable, large, priority, protected; and the order."""
    *indices, numbers = (tensor.tolist() for tensor in message.tensors)
    each = 178 if indices else 356
    owner = [variable for variable, size in enumerate(shape.sizes) for _ in range(size)]
    first = message.body.first_entry(message.sender, WORKERS, shape.size)
    places = indices[0] if indices else range(first, first + len(numbers))
    parts = [range(begin, min(begin + each, len(numbers))) for begin in range(0, len(numbers), each)]
    variables = [owner[places[part[0]]] for part in parts]
    means = [np.abs(message.tensors[-1].numpy()[part.start : part.stop]).mean() for part in parts]
    rows = []
    for part, variable, mean in zip(parts, variables, means, strict=True):
        of_variable = [other for other, its in zip(means, variables, strict=True) if its == variable]
        large = mean >= np.quantile(np.array(of_variable, np.float64), dlcp.quantile)
        front, small = variable < dlcp.front * len(shape.sizes), not large
        droppable = {"none": False, "layer": front, "magnitude": small, "layer+magnitude": front and small}[dlcp.drop]
        in_order = dlcp.order == "layer" and message.body.stage != "mix"
        priority = priorities * variable // len(shape.sizes) if in_order else 0
        rows.append((4 * len(part) * len(message.tensors), variable, large, priority, not droppable))
    order = list(range(len(parts)))
    if message.body.stage == "mix":
        begin = crc32(message.tensors[-1].numpy()[:each].tobytes()) % len(parts)
        order = order[begin:] + order[:begin]
    elif dlcp.order == "layer":
        large = [number for number in order if rows[number][2]]
        small = [number for number in order if not rows[number][2]]
        order = sorted(large, key=lambda number: rows[number][1]) + sorted(small, key=lambda number: -rows[number][1])
    return rows, order


@given(
    layouts.flatmap(lambda shape: st.tuples(st.just(shape), messages(shape))),
    st.builds(
        Dlcp,
        drop=st.sampled_from(["none", "layer", "magnitude", "layer+magnitude"]),
        order=st.sampled_from(["layer", "none"]),
        front=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
        quantile=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    ),
    st.integers(1, 8),
)
def test_as_plainly_defined(given_message, dlcp, priorities):
    shape, message = given_message
    cut = Cutter(dlcp, shape, WORKERS, priorities).cut(message)
    rows, order = plainly_cut(message, shape, dlcp, priorities)
    columns = (cut.payloads, cut.variable, cut.large, cut.priority, cut.protected)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == rows
    assert cut.order.tolist() == order


def test_no_parameters_come_last_time_after_time():
    shape = layout(356 * 10)
    cutter = Cutter(Dlcp(), shape, WORKERS)
    values = torch.randn(100, shape.size, generator=torch.Generator().manual_seed(0))
    last = [int(cutter.cut(Message(0, Mixed(0, 8), (each,))).order[-1]) for each in values]
    assert {*last} == {*range(10)}


@given(layouts.flatmap(messages))
def test_all_of_a_message_is_in_its_packets(message):
    assert is_cut(message, Dlcp())
    sizes = payloads(message)
    assert sizes.sum() == sum(tensor.nbytes for tensor in message.tensors)
    assert (sizes[:-1] == PAYLOAD).all()
    assert 0 < sizes[-1] <= PAYLOAD
    assert len(sizes) == packets(message)


@pytest.mark.parametrize(
    "message",
    [
        Message(0, Weights(1), (torch.ones(9),)),
        Message(0, ComputeProfile(0.1, 0.1, 9)),
        Message(0, Contribution(0, 8), (torch.tensor([]),)),
        Message(0, Contribution(0, 8), (torch.tensor([], dtype=torch.int32), torch.tensor([]))),
    ],
    ids=["knowledge", "control", "nothing", "no entries"],
)
def test_some_messages_go_as_a_whole(message):
    assert not is_cut(message, Dlcp())


def test_a_user_s_own_tensors_go_as_a_whole_unless_they_are_values():
    numbers, places = torch.ones(9), torch.arange(9, dtype=torch.int32)
    for tensors in [(places,), (numbers, numbers), (places[:3], numbers)]:
        assert not is_cut(Message(0, Mixed(0, 8), tensors), Dlcp())


def test_over_a_reliable_transport_all_go_as_a_whole():
    assert not is_cut(dense(9), Reliable())


def test_no_magnitudes_are_as_large_as_any():
    cut = Cutter(Dlcp(), layout(1000), WORKERS).cut(Message(0, Mixed(0, 8), (torch.zeros(1000),)))
    assert cut.large.all()


def test_where_packets_begin():
    assert starts(dense(800, offset=10), layout(1000), WORKERS).tolist() == [10, 366, 722]
    indices = torch.arange(0, 1000, 2, dtype=torch.int32)
    sparse = Message(0, Contribution(0, 8), (indices, torch.ones(500)))
    assert starts(sparse, layout(1000), WORKERS).tolist() == [0, 356, 712]
