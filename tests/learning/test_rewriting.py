from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from dlion_sim.learning import build, flatten
from dlion_sim.learning.layers import with_kernels
from dlion_sim.learning.layers.dense import OneDnnLinear
from dlion_sim.learning.layers.pooling import RectifiedMaxPool2d
from dlion_sim.learning.layers.winograd import WinogradConv2d
from dlion_sim.learning.models.registry import MODELS

pytestmark = pytest.mark.usefixtures("single_threaded")


def kinds(model):
    return [type(layer) for layer in model]


def gradient(model, images, labels):
    gradients = torch.autograd.grad(cross_entropy(model(images), labels), list(model.parameters()))
    return torch.cat([each.reshape(-1) for each in gradients])


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if "images" in model.takes])
def test_models_keep_their_parameters_and_gradients(name):
    model = build(name, (3, 32, 32), 10, seed=0)
    faster = with_kernels(copy.deepcopy(model), "fast")
    assert [n for n, _ in faster.named_parameters()] == [n for n, _ in model.named_parameters()]
    assert torch.equal(flatten(faster), flatten(model))
    images = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    expected, found = (gradient(each, images, torch.arange(8)) for each in (model, faster))
    # Rounding, other on each processor, may move a value to the other side of a ReLU, or another pixel of a pool ahead:
    # of eight images that is a few thousandths.
    assert torch.linalg.vector_norm(found - expected) <= 1e-2 * torch.linalg.vector_norm(expected)


def test_layers_of_cipher():
    faster = with_kernels(build("cipher", (3, 32, 32), 10, seed=0), "fast")
    pool, dense = [RectifiedMaxPool2d, nn.Identity], [nn.Flatten, OneDnnLinear, nn.ReLU, nn.Linear]
    assert kinds(faster) == [nn.Conv2d, *pool, WinogradConv2d, nn.Identity, WinogradConv2d, *pool, *dense]


@pytest.mark.parametrize(
    "layers",
    [
        [nn.Conv2d(64, 64, 3), nn.ReLU()],
        [nn.Conv2d(64, 64, 3, padding="same")],
        [nn.Conv2d(64, 64, 3, padding=1, stride=2)],
        [nn.Conv2d(64, 64, 3, padding=1, groups=2)],
        [nn.Conv2d(64, 64, 3, padding=1, dilation=2)],
        [nn.Conv2d(64, 64, 3, padding=1, padding_mode="circular")],
        [nn.Conv2d(3, 64, 3, padding=1), nn.Conv2d(64, 10, 3, padding=1)],
        [nn.Conv2d(64, 64, 5, padding=2)],
        [nn.ReLU(), nn.MaxPool2d(3)],
        [nn.ReLU(), nn.MaxPool2d(2, stride=1)],
        [nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)],
        [nn.ReLU(), nn.AvgPool2d(2)],
        [nn.MaxPool2d(2), nn.ReLU()],
    ],
)
def test_other_layers_stay(layers):
    assert [*with_kernels(nn.Sequential(*layers), "fast")] == layers


def test_parameters_stay_the_same_objects_wherever_they_stand():
    inner = nn.Sequential(nn.GELU(), nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.GELU())
    model = nn.ModuleDict({"first": nn.Sequential(nn.Conv2d(64, 64, 1), inner)})
    before = dict(model.named_parameters())
    after = dict(with_kernels(model, "fast").named_parameters())
    assert kinds(inner) == [nn.GELU, WinogradConv2d, nn.GELU]
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)
