"""Functions as their recorded operators."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import gelu, layer_norm

from dlion_sim.learning import Layout, Replica, build, flatten
from dlion_sim.learning import gradients as gradients_module
from dlion_sim.learning.datasets.scikit_learn import digits as load_digits
from dlion_sim.learning.gradients import GradientExecutor
from dlion_sim.learning.recorded import is_recordable, recorded

pytestmark = pytest.mark.usefixtures("single_threaded")
CONSTANT = torch.tensor([2.0, 3.0])


def several(first, second):
    """In place, with views, several results, a constant and a number."""
    scaled = first * CONSTANT
    scaled.add_(second, alpha=0.5)
    rows = scaled.unbind()
    return torch.cat([rows[1], rows[0].detach(), second[0]]), scaled.t()


def derivative(parameters, inputs):
    weights = parameters.detach().view(3, 2).requires_grad_()
    outputs = gelu(layer_norm(inputs @ weights, (2,)), approximate="tanh")
    (gradient,) = torch.autograd.grad(outputs.square().sum(), (weights,))
    return outputs.detach(), gradient.reshape(-1)


@pytest.mark.parametrize(("function", "shapes"), [(several, [(2, 2), (2, 2)]), (derivative, [(6,), (4, 3)])])
def test_recorded_operators_give_the_same_bits_for_other_values(function, shapes):
    random = torch.Generator().manual_seed(0)
    program = recorded(function, *(torch.randn(shape, generator=random) for shape in shapes))
    for _ in range(3):
        inputs = [torch.randn(shape, generator=random) for shape in shapes]
        before = [each.clone() for each in inputs]
        for result, expected in zip(program(*inputs), function(*inputs), strict=True):
            assert torch.equal(result, expected)
            assert not result.requires_grad
            result.add_(1)  # belongs to the caller
        assert all(map(torch.equal, inputs, before))


class Branching(nn.Linear):
    def forward(self, inputs):
        return super().forward(inputs if inputs.sum() > 0 else -inputs)


@pytest.mark.parametrize(
    ("layer", "is_one"),
    [
        (nn.ReLU(), True),
        (nn.LayerNorm(5), True),
        (nn.Dropout(), False),
        (nn.BatchNorm1d(5), False),
        (Branching(5, 5), False),
    ],
)
def test_only_models_without_branches_chance_or_state_are_recordable(layer, is_one):
    assert is_recordable(nn.Sequential(nn.Flatten(), nn.Linear(3, 5), layer)) == is_one
    assert is_recordable(build("mlp", (1, 8, 8), 10, seed=0))


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture
def counted(monkeypatch):
    """The batch sizes that are recorded."""
    sizes = []

    def counting(function, parameters, indices):
        sizes.append(len(indices))
        return recorded(function, parameters, indices)

    monkeypatch.setattr(gradients_module, "recorded", counting)
    return sizes


def executors(model, dataset):
    """One that computes at once, and one that does so in the background."""
    device = torch.device("cpu")
    return GradientExecutor(model, dataset, device, at_once=2000), GradientExecutor(model, dataset, device)


def test_gradients_at_once_are_to_the_bit_those_of_the_background(digits, counted, monkeypatch):
    monkeypatch.setattr(gradients_module, "_OFTEN", 0)
    model = build("mlp", (1, 8, 8), 10, seed=0)
    at_once, background = executors(model, digits)
    random = np.random.default_rng(0)
    for seed, size in enumerate([8, 3, 8, 256, 257, 1]):
        initial = flatten(model) + 0.1 * torch.randn(
            flatten(model).shape, generator=torch.Generator().manual_seed(seed)
        )
        replica = Replica(Layout.of(model), initial, learning_rate=0.1)
        samples = random.integers(0, len(digits.train_targets), size)
        loss, gradient = at_once.result(at_once.submit(replica, samples))
        expected_loss, expected = background.result(background.submit(replica, samples))
        assert loss == expected_loss
        assert torch.equal(gradient, expected)
    assert counted == [8, 3, 256, 1]
    for executor in (at_once, background):
        executor.close()


def test_only_frequent_batch_sizes_are_recorded(digits, counted):
    model = build("mlp", (1, 8, 8), 10, seed=0)
    at_once, background = executors(model, digits)
    replica = Replica(Layout.of(model), flatten(model), learning_rate=0.1)
    for size in (8, 9):
        for _ in range(gradients_module._OFTEN):
            at_once.submit(replica, np.arange(size))
    assert not counted
    loss, gradient = at_once.result(at_once.submit(replica, np.arange(9)))
    at_once.submit(replica, np.arange(9))
    assert counted == [9]
    expected_loss, expected = background.result(background.submit(replica, np.arange(9)))
    assert loss == expected_loss
    assert torch.equal(gradient, expected)
    for executor in (at_once, background):
        executor.close()


def test_a_model_with_chance_is_not_recorded(digits, counted, monkeypatch):
    monkeypatch.setattr(gradients_module, "_OFTEN", 0)
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 10))
    at_once, background = executors(model, digits)
    replica = Replica(Layout.of(model), flatten(model), learning_rate=0.1)
    results = {float(at_once.result(at_once.submit(replica, np.arange(8)))[0]) for _ in range(3)}
    assert len(results) == 3
    assert not counted
    for executor in (at_once, background):
        executor.close()
