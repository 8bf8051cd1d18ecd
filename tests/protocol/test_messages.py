"""The wire format: what is sent comes back, its size is known beforehand, and nothing else is accepted."""

import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.batching.weighted_dynamic import ComputeProfile
from dlion_sim.protocol.exchange.parameter_server import Push
from dlion_sim.protocol.exchange.periodic import Moved, MovedChunk
from dlion_sim.protocol.exchange.ring_sum import Chunk
from dlion_sim.protocol.exchange.sgp import Pushed
from dlion_sim.protocol.exchange.sparse_loco import Packed
from dlion_sim.protocol.exchange.streaming_diloco import Fragment
from dlion_sim.protocol.knowledge.direct import LossReport, WeightsRequest
from dlion_sim.protocol.messages import Contribution, MalformedMessageError, Message, Mixed, Weights, decode

P = 50
floats = st.floats(width=32, allow_nan=False)


@st.composite
def messages(draw):
    sender = draw(st.integers(0, 9))
    values = torch.tensor(draw(st.lists(floats, min_size=P, max_size=P)))
    iteration = draw(st.integers(0, 10**9))
    match draw(st.sampled_from(["dense", "sparse", "weights", "control", "fp16", "bf16"])):
        case "fp16" | "bf16" as half:
            rounded = values.to(torch.float16 if half == "fp16" else torch.bfloat16)
            return Message(sender, Moved(iteration, 32), (rounded,))
        case "dense":
            return Message(sender, Contribution(iteration, 32, 100.0), (values,))
        case "sparse":
            indices = torch.tensor(sorted(draw(st.sets(st.integers(0, P - 1)))), dtype=torch.int32)
            return Message(sender, Contribution(iteration, 7, 12.5), (indices, values[: len(indices)]))
        case "weights":
            return Message(sender, Weights(iteration), (values,))
        case _:
            body = draw(st.sampled_from([ComputeProfile(0.01, 0.002, 500), LossReport(3, 0.25), WeightsRequest()]))
            return Message(sender, body)


@given(messages())
def test_round_trip_and_size(message):
    data = message.encode()
    assert len(data) == message.size
    back = decode(data, workers=10, parameters=P)
    assert (back.sender, back.body) == (message.sender, message.body)
    assert len(back.tensors) == len(message.tensors)
    assert all(torch.equal(a, b) for a, b in zip(back.tensors, message.tensors, strict=True))


def test_tensors_are_not_copied():
    values = torch.arange(float(P))
    header, memory = Message(3, Weights(1), (values,)).buffers
    values[7] = -1.0
    received = bytearray(header + memory)
    (back,) = decode(memoryview(received), workers=10, parameters=P).tensors
    assert back[7] == -1.0
    received[-4:] = struct.pack("<f", 3.5)
    assert back[-1] == 3.5


def test_read_only_memory_is_copied():
    data = Message(3, Weights(1), (torch.arange(float(P)),)).encode()
    (back,) = decode(data, workers=10, parameters=P).tensors
    back[0] = 7.0
    assert decode(data, workers=10, parameters=P).tensors[0][0] == 0.0


def test_a_dense_gradient_costs_four_bytes_an_entry_and_a_small_header():
    message = Message(3, Contribution(120, 32, 100.0), (torch.zeros(1_249_114),))
    assert 0 < message.size - 4 * 1_249_114 <= 64


@given(messages(), st.data())
def test_damaged_messages_are_refused_or_harmless(message, data):
    """No damage makes decode do anything but refuse, or return a message that fits the run."""
    raw = bytearray(message.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw
    try:
        back = decode(bytes(raw), workers=10, parameters=P)
    except MalformedMessageError:
        return
    assert back.sender < 10
    assert all(tensor.numel() <= P for tensor in back.tensors)
    if len(back.tensors) == 2:
        indices = back.tensors[0].tolist()
        assert indices == sorted(set(indices))
        assert all(0 <= index < P for index in indices)


@given(st.binary(max_size=200))
def test_noise_is_refused(noise):
    with pytest.raises(MalformedMessageError):
        decode(noise, workers=10, parameters=P)


@pytest.mark.parametrize(
    "message",
    [
        Message(10, WeightsRequest()),  # no such worker
        Message(0, Weights(1), (torch.zeros(P - 1),)),  # not the whole model
        Message(0, WeightsRequest(), (torch.zeros(P),)),  # nothing belongs there
        Message(0, Contribution(1, 1, 1.0), (torch.tensor([3, 3], dtype=torch.int32), torch.zeros(2))),  # twice
        Message(0, Contribution(1, 1, 1.0), (torch.tensor([P], dtype=torch.int32), torch.zeros(1))),  # beyond the model
        Message(0, Contribution(1, 0, 1.0), (torch.zeros(P),)),  # from no sample
        Message(0, Contribution(1, 1), (torch.zeros(P).half(),)),  # gradients and parameters are of single precision
        Message(0, Mixed(1, 1), (torch.zeros(P).bfloat16(),)),
        Message(0, Weights(1), (torch.zeros(P).half(),)),
        Message(0, Push(0, 1, P - 2), (torch.zeros(3),)),  # beyond the model
        Message(0, Chunk(0, 0), (torch.zeros(3).half(),)),
        Message(0, Moved(1, 1), (torch.zeros(P),)),  # and pseudo-gradients are not
        Message(0, Moved(1, 1), (torch.zeros(P + 1).half(),)),
        Message(0, MovedChunk(1, 1), (torch.zeros(3, dtype=torch.int32),)),
        Message(0, Moved(1, 1), (torch.zeros(2), torch.zeros(P, dtype=torch.uint8))),  # one scale is enough
        Message(0, Fragment(1, 1), (torch.zeros(P + 1),)),
        Message(0, Fragment(1, 1), (torch.zeros(1), torch.zeros(P + 1, dtype=torch.uint8))),
        Message(0, Packed(1, 1), (torch.zeros(3), torch.zeros(4, dtype=torch.uint8))),  # there are four levels
        Message(0, Packed(1, 1), (torch.zeros(4), torch.zeros(2 * P + 1, dtype=torch.uint8))),
        Message(0, Pushed(1, 1, share=0.0), (torch.zeros(P),)),  # no weight
        Message(0, Pushed(1, 1, share=float("nan")), (torch.zeros(P),)),
        Message(0, Pushed(1, 1, share=0.5), (torch.zeros(P - 1),)),
        Message(0, ComputeProfile(float("nan"), 1.0, 5)),
        Message(0, ComputeProfile(0.0, 0.0, 5)),
    ],
)
def test_invalid_messages_are_refused(message):
    with pytest.raises(MalformedMessageError):
        decode(message.encode(), workers=10, parameters=P)
