"""What a participant gets of a message of which packets are missing."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.bounded_loss.assembling import Assembler
from dlion_sim.bounded_loss.cutting import packets, per_packet
from dlion_sim.protocol.exchange.parameter_server import Pulled
from dlion_sim.protocol.exchange.ring import Chunk, Total
from dlion_sim.protocol.messages import GRADIENTS, Contribution, Message, Mixed
from dlion_sim.protocol.updates import Update
from dlion_sim.scenario import Dlcp
from tests.bounded_loss.made import WORKERS, dense, layout, layouts, messages

SHAPE = layout(712, 356)
GAP = np.array([1, 0, 1], np.uint8)


def assembler(fill="zero", shape=SHAPE):
    return Assembler(Dlcp(fill=fill), shape, WORKERS)


def plainly_assembled(message, have, fill, previous):
    """Entry by entry."""
    each = per_packet(message)
    there = [bool(have[number // each]) for number in range(len(message.tensors[-1]))]
    scaled = fill == "rescale" and message.body.stage in GRADIENTS
    scale = len(there) / sum(there) if scaled and any(there) else 1.0
    *indices, values = (tensor.tolist() for tensor in message.tensors)
    if indices:
        kept = [place for place, is_there in zip(indices[0], there, strict=True) if is_there]
        return kept, [value * scale for value, is_there in zip(values, there, strict=True) if is_there]
    stale = fill == "stale" or message.body.stage not in GRADIENTS
    others = previous if stale and previous else [0.0] * len(values)
    return [value * scale if is_there else other for value, is_there, other in zip(values, there, others, strict=True)]


@given(
    layouts.flatmap(lambda shape: st.tuples(st.just(shape), messages(shape))),
    st.sampled_from(["zero", "rescale", "stale"]),
    st.booleans(),
    st.data(),
)
def test_as_plainly_defined(given_message, fill, has_previous, data):
    shape, message = given_message
    one = assembler(fill, shape)
    previous = [7.0] * len(message.tensors[-1])
    if has_previous:
        before = (*message.tensors[:-1], torch.tensor(previous))
        one.assemble(Message(1, message.body, before), np.ones(packets(message), np.uint8))
    have = np.array(data.draw(st.lists(st.integers(0, 1), min_size=packets(message), max_size=packets(message))))
    copies = [tensor.clone() for tensor in message.tensors]
    got = one.assemble(message, have.astype(np.uint8))
    expected = plainly_assembled(message, have, fill, previous if has_previous else None)
    for tensor, numbers in zip(got.tensors, expected if len(copies) == 2 else [expected], strict=True):
        np.testing.assert_allclose(tensor.numpy(), numbers, rtol=1e-6)
    assert (got is message) == have.all()
    assert (type(got), got.sender, got.body) == (type(message), message.sender, message.body)
    assert all(map(torch.equal, copies, message.tensors)), "receivers share them"


def test_an_update_stays_one():
    update = Update(1, Contribution(0, 8), (torch.ones(SHAPE.size),))
    assert type(assembler().assemble(update, GAP)) is Update


def test_rescaled_gradients_are_right_in_the_mean():
    message, rng = dense(SHAPE.size), np.random.default_rng(0)
    total = torch.zeros(SHAPE.size, dtype=torch.float64)
    for _ in range(3000):
        have = np.array([1, 1, 0], np.uint8)
        rng.shuffle(have)
        total += assembler("rescale").assemble(message, have).tensors[0]
    torch.testing.assert_close(total / 3000, message.tensors[0].double(), rtol=0.1, atol=1e-9)


@pytest.mark.parametrize("fill", ["zero", "rescale", "stale"])
def test_missing_parameters_are_those_of_the_sender_s_previous_message(fill):
    one, all_here = assembler(fill), np.ones(3, np.uint8)
    first, second = (Message(1, Pulled(number, 8), (torch.full((SHAPE.size,), number + 1.0),)) for number in (0, 1))
    assert one.must_be_whole(first)
    one.assemble(first, all_here)
    assert not one.must_be_whole(second)
    got = one.assemble(second, GAP)
    assert got.tensors[0][[0, 356, 712]].tolist() == [2, 1, 2]
    third = Message(1, Pulled(2, 8), (torch.full((SHAPE.size,), 3.0),))
    assert one.assemble(third, np.array([0, 0, 1], np.uint8)).tensors[0][[0, 356, 712]].tolist() == [2, 1, 3]


def test_parameters_of_another_kind_sender_or_place_do_not_stand_in():
    one = assembler()
    one.assemble(dense(356, body=Mixed), np.ones(1, np.uint8))
    assert not one.must_be_whole(dense(356, body=Mixed, iteration=4))
    for other in (
        dense(356, body=Pulled),
        dense(356, body=Mixed, offset=1),
        dense(355, body=Mixed),
        Message(2, Mixed(0, 8), (torch.ones(356),)),
    ):
        assert one.must_be_whole(other)


def test_first_gradients_need_not_be_whole():
    one = assembler("stale")
    assert not one.must_be_whole(dense(SHAPE.size))
    assert one.assemble(Message(1, Contribution(0, 8), (torch.ones(SHAPE.size),)), GAP).tensors[0][356] == 0


def test_a_ring_s_chunks_are_kept_by_place():
    one, here = assembler("stale"), np.ones(1, np.uint8)
    for step, body in enumerate((Chunk, Chunk, Total, Total)):
        one.assemble(Message(1, body(0, step), (torch.full((356,), step + 1.0),)), here)
    for step, body in enumerate((Chunk, Chunk, Total, Total)):
        lost = one.assemble(Message(1, body(1, step), (torch.full((356,), 9.0),)), np.zeros(1, np.uint8))
        assert lost.tensors[0][0] == step + 1.0


def test_memory_for_senders_of_ever_other_stretches_is_bounded():
    one = assembler("stale")
    for offset in range(SHAPE.size):
        one.assemble(dense(1, offset=offset), np.ones(1, np.uint8))
        one.assemble(dense(SHAPE.size - offset, offset=offset), np.ones(packets(dense(SHAPE.size - offset)), np.uint8))
    kept = [values for last in one._last.values() for values in last.values()]
    assert sum(map(len, kept)) <= 2 * SHAPE.size
    one.lost(1)
    assert not one._last
