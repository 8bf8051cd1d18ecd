from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from dlion_sim.learning import FusedGradientExecutor, GradientExecutor, Layout, Replica, build, flatten
from tests.learning.conftest import CPU

pytestmark = pytest.mark.usefixtures("single_threaded")
NAMES = ("cipher", "mlp", "mobilenet", "resnet18", "tf_ako", "tutorial_cnn")


def replicas_of(model, count):
    """Replicas that differ."""
    layout, initial = Layout.of(model), flatten(model)
    noise = torch.Generator().manual_seed(0)
    return [
        Replica(layout, initial + 0.01 * torch.randn(layout.size, generator=noise), learning_rate=0.1)
        for _ in range(count)
    ]


def batches(count, size=8):
    rng = np.random.default_rng(0)
    return [rng.permutation(200)[:size] for _ in range(count)]


@pytest.fixture(scope="module")
def model():
    return build("mlp", (3, 8, 8), 10, seed=0)


@pytest.mark.parametrize("name", NAMES)
def test_gradient_equals_plain_autograd(name, dataset):
    model = build(name, dataset.input_shape, 10, seed=0)
    (replica,), (indices,) = replicas_of(model, 1), batches(1)
    with closing(GradientExecutor(model, dataset, CPU)) as executor:
        loss, gradient = executor.result(executor.submit(replica, indices))

    for parameter, view in zip(model.parameters(), replica.layout.views(replica.parameters), strict=True):
        parameter.data.copy_(view)
    expected = cross_entropy(model((dataset.train_inputs[indices] / 255 - 0.5) / 0.25), dataset.train_targets[indices])
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    torch.testing.assert_close(
        gradient, torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()]), rtol=1e-3, atol=1e-5
    )


@pytest.mark.parametrize("name", ["cipher", "mobilenet"])
def test_results_are_equal_to_the_bit_in_any_order_and_with_any_threads(name, dataset):
    model = build(name, dataset.input_shape, 10, seed=0)
    replicas, indices = replicas_of(model, 3), batches(3)

    def together(threads, order, at_once=0):
        with closing(GradientExecutor(model, dataset, CPU, threads=threads, at_once=at_once)) as executor:
            tickets = {worker: executor.submit(replicas[worker], indices[worker]) for worker in order}
            return [executor.result(tickets[worker]) for worker in range(3)]

    def one_by_one():
        with closing(GradientExecutor(model, dataset, CPU, threads=2)) as executor:
            return [executor.result(executor.submit(*each)) for each in zip(replicas, indices, strict=True)]

    reference = together(1, range(3))
    for results in (together(3, [1, 2, 0]), together(1, [1, 2, 0], at_once=8), one_by_one()):
        for (loss, gradient), (reference_loss, reference_gradient) in zip(results, reference, strict=True):
            assert loss == reference_loss
            assert torch.equal(gradient, reference_gradient)


@pytest.mark.parametrize("kind", [GradientExecutor, FusedGradientExecutor])
def test_replicas_are_not_written(kind, model, dataset):
    (replica,), (indices,) = replicas_of(model, 1), batches(1)
    before = replica.parameters.clone()
    with closing(kind(model, dataset, CPU)) as executor:
        executor.result(executor.submit(replica, indices))
    assert torch.equal(replica.parameters, before)
    assert replica.version == 0
    assert not replica.parameters.requires_grad


@pytest.mark.parametrize("kind", [GradientExecutor, FusedGradientExecutor])
def test_gradients_belong_to_the_caller(kind, model, dataset):
    (replica,), (indices,) = replicas_of(model, 1), batches(1)
    with closing(kind(model, dataset, CPU)) as executor:
        (_, first), (_, second) = (executor.result(executor.submit(replica, indices)) for _ in range(2))
    assert not first.requires_grad
    first.zero_()
    assert second.any()


@pytest.mark.parametrize("kind", [GradientExecutor, FusedGradientExecutor])
def test_a_write_before_the_result_is_read_is_refused(kind, model, dataset):
    one, other = replicas_of(model, 2)
    with closing(kind(model, dataset, CPU)) as executor:
        kept, spoilt = executor.submit(one, batches(1)[0]), executor.submit(other, batches(1)[0])
        other.merge(one.snapshot(), 0.5)
        with pytest.raises(RuntimeError, match="version 0, now 1"):
            executor.result(spoilt)
        assert executor.result(kept)[0] > 0


def test_closing_drops_pending_gradients(model, dataset):
    (replica,), (indices,) = replicas_of(model, 1), batches(1)
    with closing(GradientExecutor(model, dataset, CPU, threads=1)) as executor:
        tickets = [executor.submit(replica, indices) for _ in range(200)]
    assert tickets[-1].answer.cancelled()
