from __future__ import annotations

import pytest
import torch
from torch import nn

from dlion_sim.learning.layers.dense import OneDnnLinear


def outputs_and_gradients(layer, inputs):
    inputs = inputs.clone().requires_grad_()
    outputs = layer(inputs)
    factors = torch.arange(1.0, outputs.numel() + 1, dtype=outputs.dtype).sin().view(outputs.shape)
    return outputs.detach(), *torch.autograd.grad(outputs, [inputs, *layer.parameters()], factors)


@pytest.mark.parametrize("shape", [(1, 300), (7, 300), (32, 300), (2, 3, 300)])
@pytest.mark.parametrize("bias", [True, False])
def test_equals_a_dense_layer_in_double_precision(shape, bias):
    plain = nn.Linear(300, 290, bias)
    inputs = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    found = outputs_and_gradients(OneDnnLinear(plain), inputs)
    expected = outputs_and_gradients(plain.double(), inputs.double())
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert torch.linalg.vector_norm(one - other) <= 1e-5 * torch.linalg.vector_norm(other)


def test_small_layers_stay():
    assert OneDnnLinear.replaces(nn.Linear(256, 256))
    assert not OneDnnLinear.replaces(nn.Linear(255, 256))
