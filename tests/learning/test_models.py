from __future__ import annotations

import pytest
import torch

from dlion_sim.errors import InputError
from dlion_sim.learning import Dataset, Layout, build, flatten, own_model, training_flops
from dlion_sim.learning.models.registry import MODELS
from dlion_sim.learning.tasks import Classification, NextToken

pytestmark = pytest.mark.usefixtures("single_threaded")

CIFAR, MNIST, DIGITS = (3, 32, 32), (1, 28, 28), (1, 8, 8)
NAMES = ("cipher", "mlp", "mobilenet", "resnet18", "tf_ako", "tutorial_cnn")


@pytest.mark.parametrize(
    ("name", "shape", "classes", "parameters"),
    [
        ("cipher", CIFAR, 10, 1_248_896),
        ("tutorial_cnn", CIFAR, 10, 4_259_274),
        ("tf_ako", CIFAR, 10, 4_263_434),
        ("mobilenet", (3, 224, 224), 1000, 4_231_976),
        ("resnet18", CIFAR, 10, 11_173_962),
        ("resnet18", CIFAR, 100, 11_220_132),
        ("mlp", DIGITS, 10, 64 * 128 + 128 + 128 * 10 + 10),
    ],
)
def test_parameter_counts(name, shape, classes, parameters):
    assert Layout.of(build(name, shape, classes, seed=0)).size == parameters


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [CIFAR, MNIST, DIGITS])
def test_logits_depend_on_the_image_for_every_input_shape(name, shape):
    logits = build(name, shape, 10, seed=0)(torch.randn(2, *shape, generator=torch.Generator().manual_seed(0)))
    assert logits.shape == (2, 10)
    assert not torch.equal(logits[0], logits[1])


@pytest.mark.parametrize("name", NAMES)
def test_all_state_is_trainable(name):
    model = build(name, CIFAR, 10, seed=0)
    assert not list(model.buffers())
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_ready_models_pass_the_checks_of_own_ones(name):
    if "images" in MODELS[name].takes:
        samples, targets, task = torch.rand(3, 1, 28, 28), torch.arange(3), Classification(3)
    else:
        samples = targets = torch.arange(24).view(3, 8)
        task = NextToken(24)
    data = Dataset(samples, targets, samples, targets, task)
    ready = build(name, data.input_shape, task.outputs, seed=0)
    assert own_model(name, lambda dataset: ready, data, seed=0) is ready


def test_seed_decides_the_parameters():
    first, again, other = (flatten(build("cipher", CIFAR, 10, seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_building_leaves_global_random_state_alone():
    before = torch.get_rng_state()
    build("cipher", CIFAR, 10, seed=2**62)
    assert torch.equal(torch.get_rng_state(), before)


def test_unknown_model_is_the_users_error():
    with pytest.raises(InputError, match=r"^model: no model is named 'lenet'; allowed: cipher, .*tutorial_cnn"):
        build("lenet", CIFAR, 10, seed=0)


@pytest.mark.parametrize(
    ("name", "shape", "classes", "forward", "first"),
    [
        (
            "cipher",
            CIFAR,
            10,
            32 * 32 * 75 * 32 + 16 * 16 * (288 + 576) * 64 + 4096 * 290 + 290 * 10,
            32 * 32 * 75 * 32,
        ),
        ("mobilenet", (3, 224, 224), 1000, 568_740_352, 112 * 112 * 27 * 32),
        ("mlp", DIGITS, 10, 64 * 128 + 128 * 10, 64 * 128),
        (
            "resnet18",
            CIFAR,
            10,
            32 * 32 * (27 * 64 + 4 * 576 * 64)
            + 16 * 16 * (576 + 3 * 1152 + 64) * 128
            + 8 * 8 * (1152 + 3 * 2304 + 128) * 256
            + 4 * 4 * (2304 + 3 * 4608 + 256) * 512
            + 512 * 10,
            32 * 32 * 27 * 64,
        ),
    ],
)
def test_flops_are_three_forward_passes_less_the_gradient_of_the_image(name, shape, classes, forward, first):
    assert training_flops(build(name, shape, classes, seed=0), torch.empty(1, *shape)) == 2 * (3 * forward - first)


def test_tf_ako_starts_from_truncated_normal_weights():
    model = build("tf_ako", CIFAR, 10, seed=0)

    weights = flatten(model).double()[flatten(model) != 0.1]
    assert weights.abs().max() <= 0.2
    # A normal law cut at two deviations keeps 0.8796 of its own.
    assert weights.std() == pytest.approx(0.08796, rel=0.01)
    assert all(bool((bias == 0.1).all()) for name, bias in model.named_parameters() if name.endswith("bias"))
