from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dlion_sim.learning import build
from dlion_sim.learning.layers import depthwise, with_kernels
from dlion_sim.learning.layers.depthwise import DepthwiseConv2d
from tests.learning.convolutions import normal, outputs_and_gradients

pytestmark = pytest.mark.usefixtures("single_threaded")

TOLERANCE = 1e-6
"""Of norms, for float32 against float64."""


def convolution(channels, stride):
    layer = nn.Conv2d(channels, channels, 3, stride, padding=1, groups=channels, bias=False)
    layer.weight.data = normal(*layer.weight.shape, seed=2)
    return layer


sizes = st.integers(1, 9)


@settings(max_examples=50)
@given(st.integers(1, 5), st.integers(1, 40), sizes, sizes, st.sampled_from([1, 2]), st.booleans())
def test_equals_a_convolution_in_double_precision(batch, channels, height, width, stride, is_channels_last):
    plain, images = convolution(channels, stride), normal(batch, channels, height, width)
    order = torch.channels_last if is_channels_last else torch.contiguous_format
    found = outputs_and_gradients(DepthwiseConv2d(plain), images.contiguous(memory_format=order))
    expected = outputs_and_gradients(plain.double(), images.double())
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert torch.linalg.vector_norm(one - other) <= TOLERANCE * torch.linalg.vector_norm(other)


@pytest.mark.parametrize(
    "other",
    [
        nn.Conv2d(8, 8, 3, padding=1, groups=4, bias=False),
        nn.Conv2d(8, 16, 3, padding=1, groups=8, bias=False),
        nn.Conv2d(8, 8, 3, padding=1, groups=8),
        nn.Conv2d(8, 8, 3, groups=8, bias=False),
        nn.Conv2d(8, 8, 3, stride=3, padding=1, groups=8, bias=False),
        nn.Conv2d(8, 8, 5, padding=1, groups=8, bias=False),
        nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False, padding_mode="circular"),
    ],
)
def test_others_are_left_to_torch(other):
    assert not DepthwiseConv2d.replaces(other)


def test_mobilenets_are_replaced_and_compute_the_same():
    plain, images = build("mobilenet", (3, 32, 32), 10, seed=0), normal(4, 3, 32, 32)
    fast = with_kernels(build("mobilenet", (3, 32, 32), 10, seed=0), "fast")
    assert sum(type(layer) is DepthwiseConv2d for layer in fast) == 13
    of_plain, of_fast = (
        torch.autograd.grad(model(images).square().sum(), [*model.parameters()]) for model in (plain, fast)
    )
    for one, other in zip(of_fast, of_plain, strict=True):
        assert torch.linalg.vector_norm(one - other) <= 1e-4 * torch.linalg.vector_norm(other)


def test_use_compiles_nothing_more():
    layer = DepthwiseConv2d(convolution(4, 2))
    for order in (torch.channels_last, torch.contiguous_format):
        outputs_and_gradients(layer, normal(2, 4, 5, 6).contiguous(memory_format=order))
    assert len(depthwise._convolve.signatures) == len(depthwise._differentiate.signatures) == 1
