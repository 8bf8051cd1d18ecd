from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dlion_sim.learning.layers import kernels
from dlion_sim.learning.layers.winograd import WinogradConv2d
from tests.learning.convolutions import normal, outputs_and_gradients

pytestmark = pytest.mark.usefixtures("single_threaded")

TOLERANCE = 1e-5
"""Of norms, for float32 against float64."""


@pytest.fixture(autouse=True)
def _also_where_it_does_not_pay(monkeypatch):
    monkeypatch.setattr(kernels, "pay", lambda *_: True)


def convolution(channels, filters, bias=True):
    layer = nn.Conv2d(channels, filters, 3, padding=1, bias=bias)
    for seed, parameter in enumerate(layer.parameters()):
        parameter.data = normal(*parameter.shape, seed=seed)
    return layer


widths = st.sampled_from([kernels.CHANNELS, 2 * kernels.CHANNELS, 3 * kernels.CHANNELS])
sizes = st.integers(1, 13)


@settings(max_examples=30)
@given(st.integers(1, 40), widths, widths, sizes, sizes, st.booleans(), st.booleans())
def test_equals_a_convolution_in_double_precision(batch, channels, filters, height, width, bias, is_channels_last):
    plain, images = convolution(channels, filters, bias), normal(batch, channels, height, width)
    order = torch.channels_last if is_channels_last else torch.contiguous_format
    found = outputs_and_gradients(WinogradConv2d(plain), images.contiguous(memory_format=order))
    expected = outputs_and_gradients(plain.double(), images.double())
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert torch.linalg.vector_norm(one - other) <= TOLERANCE * torch.linalg.vector_norm(other)


def test_rectifying_is_a_relu_after():
    plain, images = convolution(kernels.CHANNELS, kernels.CHANNELS), normal(3, kernels.CHANNELS, 6, 9)
    found = outputs_and_gradients(WinogradConv2d(plain, rectifies=True), images)
    for one, other in zip(
        found, outputs_and_gradients(nn.Sequential(WinogradConv2d(plain), nn.ReLU()), images), strict=True
    ):
        assert torch.equal(one, other)
    assert 0.4 < (found[0] == 0).float().mean() < 0.6


def test_the_next_layer_may_write_onto_its_outputs():
    plain, images = convolution(kernels.CHANNELS, kernels.CHANNELS), normal(3, kernels.CHANNELS, 8, 8)
    found, expected = (
        outputs_and_gradients(nn.Sequential(WinogradConv2d(plain), nn.LeakyReLU(inplace=inplace)), images)
        for inplace in (True, False)
    )
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


def test_samples_are_independent():
    layer, images = WinogradConv2d(convolution(kernels.CHANNELS, kernels.CHANNELS)), normal(37, kernels.CHANNELS, 8, 8)
    outputs, by_images, *_ = outputs_and_gradients(layer, images)
    images[20] = torch.nan
    others, by_others, *_ = outputs_and_gradients(layer, images)
    assert others[20].isnan().all()
    for found, expected in ((others, outputs), (by_others, by_images)):
        for part in (slice(20), slice(21, None)):
            assert torch.equal(found[part], expected[part])


def test_nan_passes_a_relu():
    layer = WinogradConv2d(convolution(kernels.CHANNELS, kernels.CHANNELS), rectifies=True)
    assert layer(torch.full((1, kernels.CHANNELS, 4, 4), torch.nan)).isnan().all()


@pytest.mark.parametrize("rectifies", [False, True])
def test_tiny_images_are_left_to_torch(rectifies, monkeypatch):
    monkeypatch.undo()
    plain, images = convolution(kernels.CHANNELS, kernels.CHANNELS), normal(2, kernels.CHANNELS, 2, 2)
    reference = nn.Sequential(plain, nn.ReLU()) if rectifies else plain
    found = outputs_and_gradients(WinogradConv2d(plain, rectifies), images)
    for one, other in zip(found, outputs_and_gradients(reference, images), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("size", [1, 4])
def test_use_compiles_nothing_more(batch, size):
    layer = WinogradConv2d(convolution(kernels.CHANNELS, kernels.CHANNELS))
    for order in (torch.channels_last, torch.contiguous_format):
        outputs_and_gradients(layer, normal(batch, kernels.CHANNELS, size, size).contiguous(memory_format=order))
    assert len(kernels.convolve.signatures) == len(kernels.differentiate.signatures) == 1
