from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch import nn

from dlion_sim.learning.layers.pooling import RectifiedMaxPool2d

PLAIN = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2))

# Few, so that many are equal.
values = st.sampled_from([-np.inf, -1, -0.0, 0, 1, 2, np.inf, np.nan]).map(np.float32)
shapes = st.tuples(st.integers(1, 3), st.integers(1, 20), st.integers(2, 7), st.integers(2, 7))


def pooled_and_gradient(layer, images):
    images = images.clone().requires_grad_()
    pooled = layer(images)
    factors = torch.arange(1.0, pooled.numel() + 1).view(pooled.shape)
    return pooled.detach(), *torch.autograd.grad(pooled, images, factors)


@given(shapes.flatmap(lambda shape: arrays.arrays(np.float32, shape, elements=values)), st.booleans())
def test_equals_relu_and_pooling_to_the_bit(images, is_channels_last):
    order = torch.channels_last if is_channels_last else torch.contiguous_format
    images = torch.from_numpy(images).contiguous(memory_format=order)
    found, expected = pooled_and_gradient(RectifiedMaxPool2d(), images), pooled_and_gradient(PLAIN, images)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
