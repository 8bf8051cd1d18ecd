"""What layers of convolutions are compared by."""

from __future__ import annotations

import torch


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def outputs_and_gradients(layer, images):
    """The outputs, and the gradients of their product with some numbers by images, weights and bias."""
    images = images.clone().requires_grad_()
    outputs = layer(images)
    factors = normal(*outputs.shape, seed=1).to(outputs.dtype)
    return outputs.detach(), *torch.autograd.grad(outputs, [images, *layer.parameters()], factors)
