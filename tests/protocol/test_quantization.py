"""Fewer bits on the wire: sizes, the nearest value, and what a peer may send."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.exchange.streaming_diloco import Fragment
from dlion_sim.protocol.messages import MalformedMessageError, Message
from dlion_sim.protocol.messages import decode as read
from dlion_sim.protocol.quantization import BLOCK, check_encoded, decode, encode

ALL = ["fp32", "fp16", "bf16", "int8", "fp4"]


@pytest.mark.parametrize(("precision", "bits"), [("fp32", 32), ("fp16", 16), ("bf16", 16), ("int8", 8), ("fp4", 4)])
def test_so_many_bits_are_sent_of_a_value(precision, bits):
    message = Message(0, Fragment(3, 8), encode(torch.randn(100_000), precision))
    assert message.size == pytest.approx(100_000 * bits / 8, rel=0.01)
    assert len(message.encode()) == message.size


@given(
    values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=70),
    precision=st.sampled_from(["int8", "fp4"]),
)
def test_each_value_becomes_the_nearest_one(values, precision):
    values = torch.tensor(values)
    largest = values.abs().max()
    if precision == "int8":
        grid = largest * torch.arange(-127, 128) / 127
    else:
        powers = largest * 2.0 ** -torch.arange(7)
        grid = torch.cat([powers, -powers, torch.zeros(1)])
    found = decode(encode(values, precision), precision, len(values))
    nearest = (values[:, None] - grid).abs().amin(dim=1)
    torch.testing.assert_close((values - found).abs(), nearest, atol=1e-5 * float(largest), rtol=1e-4)


@pytest.mark.parametrize("precision", ALL)
@pytest.mark.parametrize("size", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_blocks_have_scales_of_their_own(precision, size):
    """A large value coarsens its block only; what is sent has the shapes that are expected, and survives the wire."""
    values = torch.linspace(-1, 1, size)
    values[-1] = 1e4
    tensors = encode(values, precision)
    check_encoded(tensors, precision, size)
    message = read(Message(0, Fragment(3, 8), tensors).encode(), workers=2, parameters=size)
    again = decode(message.tensors, precision, size)
    torch.testing.assert_close(again, decode(tensors, precision, size), atol=0, rtol=0)
    before = (size - 1) // BLOCK * BLOCK
    torch.testing.assert_close(again[:before], values[:before], atol=0.26, rtol=0)
    assert again[-1] == pytest.approx(1e4, rel=0.01)


@pytest.mark.parametrize("precision", ALL)
def test_other_shapes_are_refused(precision):
    tensors = encode(torch.ones(10), precision)
    for size in (8, 12, 2 * BLOCK):
        with pytest.raises(
            MalformedMessageError, match=f"other entries than the exchange expects: {size} in {precision}"
        ):
            check_encoded(tensors, precision, size)
