"""Tasks against PyTorch's own losses; executors and evaluators by them."""

import math
from contextlib import closing

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from dlion_sim.learning import Dataset, Evaluator, FusedGradientExecutor, GradientExecutor, Layout, Replica, flatten
from dlion_sim.learning.tasks import Classification, NextToken, Regression

pytestmark = pytest.mark.usefixtures("single_threaded")

CPU = torch.device("cpu")
RNG = torch.Generator().manual_seed(3)
CLASSES, TOKENS = torch.randint(0, 5, (350,), generator=RNG), torch.randint(0, 7, (350, 9), generator=RNG)
NUMBERS = torch.randn(350, 4, generator=RNG)
TASKS = {
    "classification": (Classification(5), NUMBERS, CLASSES, nn.Linear(4, 5)),
    "next token": (NextToken(7), TOKENS, TOKENS.roll(1, 1), nn.Sequential(nn.Embedding(7, 3), nn.Linear(3, 7))),
    "regression": (
        Regression(2),
        NUMBERS,
        NUMBERS[:, :2].sin(),
        nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)),
    ),
    "one number": (Regression(), NUMBERS, NUMBERS[:, 0].cos(), nn.Linear(4, 1)),
}


def mean_loss(name, outputs, targets):
    match name:
        case "classification":
            return cross_entropy(outputs, targets)
        case "next token":
            return cross_entropy(outputs.flatten(0, 1), targets.flatten())
        case _:
            return mse_loss(outputs, targets.view_as(outputs))


@pytest.fixture(params=TASKS)
def problem(request):
    task, inputs, targets, model = TASKS[request.param]
    return request.param, Dataset(inputs, targets, inputs, targets, task), model


def test_the_loss_is_the_mean_over_samples_and_its_gradient_torchs(problem):
    name, dataset, model = problem
    loss = mean_loss(name, model(dataset.train_inputs), dataset.train_targets)
    expected = torch.cat([each.flatten() for each in torch.autograd.grad(loss, list(model.parameters()))])
    replica = Replica(Layout.of(model), flatten(model), learning_rate=0.1)
    for executor in (GradientExecutor(model, dataset, CPU, threads=1), FusedGradientExecutor(model, dataset, CPU)):
        with closing(executor):
            found, gradient = executor.result(executor.submit(replica, torch.arange(350).numpy()))
        assert found == pytest.approx(loss.item(), rel=1e-5)
        torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-6)


def test_scores_are_of_the_whole_set_however_it_is_cut(problem):
    name, dataset, model = problem
    replica = Replica(Layout.of(model), flatten(model), learning_rate=0.1)
    with closing(Evaluator(model, dataset, CPU, threads=1)) as evaluator:
        (score,) = evaluator.evaluate([replica])
    with torch.no_grad():
        outputs = model(dataset.test_inputs)
        loss = mean_loss(name, outputs, dataset.test_targets).item()
    assert score.loss == pytest.approx(loss, rel=1e-5)
    match name:
        case "classification":
            metric = (outputs.argmax(1) == CLASSES).double().mean().item()
        case "next token":
            metric = math.exp(loss)
        case _:
            metric = math.sqrt(loss)
    assert score.metric == pytest.approx(metric, rel=1e-5)


def test_losses_sum_up(problem):
    _, dataset, model = problem
    outputs, targets = model(dataset.train_inputs), dataset.train_targets
    assert dataset.task.losses(outputs, targets).shape == (350,)
    torch.testing.assert_close(dataset.task.losses(outputs, targets).sum(), dataset.task.loss(outputs, targets))
    assert tuple(outputs.shape) == dataset.task.output_shape(targets)
    assert dataset.task.fault(targets) is None


def test_a_perplexity_beyond_floats_is_infinite():
    assert NextToken(7).score([1e6], 1).metric == math.inf
    assert math.isnan(NextToken(7).score([math.nan], 1).metric)
