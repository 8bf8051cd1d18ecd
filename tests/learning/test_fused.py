from __future__ import annotations

from concurrent.futures import CancelledError
from contextlib import closing

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dlion_sim.learning import (
    Dataset,
    FusedGradientExecutor,
    GradientExecutor,
    Replica,
    build,
    fused,
    gradient_executor,
)
from dlion_sim.learning.lora import adapted
from dlion_sim.learning.tasks import NextToken
from tests.learning.conftest import CPU, random_dataset
from tests.learning.test_gradients import NAMES, replicas_of

pytestmark = pytest.mark.usefixtures("single_threaded")

ROUNDING = 1e-5
"""Of a gradient's norm."""
KINKS = 2e-2
"""Of a gradient's norm, where rounding may decide the sign before a ReLU or the maximum of a pool."""


def smooth(model):
    """The model with smooth functions in place of those whose derivative jumps."""
    for name, layer in list(model.named_children()):
        if isinstance(layer, nn.ReLU):
            setattr(model, name, nn.Softplus())
        elif isinstance(layer, nn.MaxPool2d):
            setattr(model, name, nn.AvgPool2d(layer.kernel_size))
        else:
            smooth(layer)
    return model


def batches(*sizes):
    rng = np.random.default_rng(0)
    return [rng.integers(200, size=size) for size in sizes]


def results(executor, replicas, indices):
    with closing(executor):
        tickets = [executor.submit(*each) for each in zip(replicas, indices, strict=True)]
        return [executor.result(ticket) for ticket in tickets]


def assert_close(answers, expected, tolerance):
    for (loss, gradient), (expected_loss, expected_gradient) in zip(answers, expected, strict=True):
        assert loss == pytest.approx(expected_loss, rel=tolerance)
        assert (gradient.cpu() - expected_gradient).norm() <= tolerance * expected_gradient.norm()


def assert_equal_to_the_pool(model, dataset, indices, tolerance=ROUNDING):
    replicas = replicas_of(model, len(indices))
    expected = results(GradientExecutor(model, dataset, CPU), replicas, indices)
    assert_close(results(FusedGradientExecutor(model, dataset, CPU), replicas, indices), expected, tolerance)


@pytest.fixture(scope="module")
def model():
    return smooth(build("mlp", (3, 8, 8), 10, seed=0))


def gpt():
    return build("gpt", (16,), 20, seed=0, layers=2, heads=4, width=32)


@pytest.fixture(scope="module")
def text():
    """Sequences of 16 random tokens."""
    tokens = torch.randint(0, 20, (210, 17), generator=torch.Generator().manual_seed(0))
    inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    return Dataset(inputs[:200], targets[:200], inputs[200:], targets[200:], NextToken(20))


@pytest.fixture
def programs(monkeypatch):
    """The shapes [n, b] of the programs that ran."""
    shapes = []
    compute = FusedGradientExecutor._compute

    def observed(executor, parameters, indices, weights):
        shapes.append(tuple(indices.shape))
        return compute(executor, parameters, indices, weights)

    monkeypatch.setattr(FusedGradientExecutor, "_compute", observed)
    return shapes


@pytest.mark.parametrize("name", NAMES)
def test_gradients_equal_those_of_the_pool(name, dataset):
    assert_equal_to_the_pool(smooth(build(name, dataset.input_shape, 10, seed=0)), dataset, batches(9, 16, 12))


@pytest.mark.parametrize("of", ["all", "adapters"])
def test_a_language_model(of, text):
    assert_equal_to_the_pool(gpt() if of == "all" else adapted(gpt(), 2, 4.0), text, batches(9, 16, 12))


def test_a_model_as_it_is_on_images_of_cifars_size():
    dataset = random_dataset((3, 32, 32))
    assert_equal_to_the_pool(build("cipher", dataset.input_shape, 10, seed=0), dataset, batches(4, 8), KINKS)


@pytest.mark.parametrize("sizes", [(1,), (16,), (17,), (1, 5, 16, 17, 40), (300,), (257, 512, 3, 1000)])
def test_batches_of_any_sizes(sizes, model, dataset):
    assert_equal_to_the_pool(model, dataset, batches(*sizes))


def test_pending_gradients_are_computed_together_when_one_is_read(model, dataset, programs):
    replicas, indices = replicas_of(model, 6), batches(*(30, 32, 17, 20, 31), 300)
    with closing(FusedGradientExecutor(model, dataset, CPU)) as executor:
        tickets = [executor.submit(*each) for each in zip(replicas, indices, strict=True)]
        assert programs == []
        for ticket in tickets:
            executor.result(ticket)
    assert programs == [(8, 32), (1, 64), (1, 256)]  # 300 samples are parts of 256 and 44


def test_more_parts_than_a_program_holds(model, dataset, programs, monkeypatch):
    monkeypatch.setattr(fused, "_ROWS", 4)
    monkeypatch.setattr(fused, "_SAMPLES", 64)
    assert_equal_to_the_pool(model, dataset, batches(*(10,) * 7, *(32,) * 3))
    assert programs == [(4, 16), (4, 16), (2, 32), (1, 32)]


def test_a_diverged_replica_leaves_the_others_alone(dataset):
    model = build("cipher", dataset.input_shape, 10, seed=0)
    healthy, diverged = replicas_of(model, 2)
    diverged.write(0, torch.full_like(diverged.parameters, float("nan")))
    executor = FusedGradientExecutor(model, dataset, CPU)
    (_, gradient), (loss, _) = results(executor, [healthy, diverged], batches(8, 8))
    assert gradient.isfinite().all()
    assert np.isnan(loss)


def test_closing_drops_pending_gradients(model, dataset, programs):
    (replica,) = replicas_of(model, 1)
    with closing(FusedGradientExecutor(model, dataset, CPU)) as executor:
        ticket = executor.submit(replica, *batches(8))
    with pytest.raises(CancelledError):
        executor.result(ticket)
    assert programs == []


def test_a_recorded_program_answers_into_the_same_memory_each_time(model, dataset, monkeypatch):
    """With a stand-in for CUDA graphs: replayed, they read and write where they did when they were recorded."""
    recorded = []

    def record(function):
        answer = function()
        recorded.append(answer)

        def replay():
            for memory, value in zip(answer, function(), strict=True):
                memory.copy_(value)
            return answer

        return replay

    replicas, indices = replicas_of(model, 12), batches(*(8,) * 9, 300, 300, 600)
    expected = results(GradientExecutor(model, dataset, CPU), replicas, indices)
    monkeypatch.setattr(fused, "_ROWS", 2)
    executor = FusedGradientExecutor(model, dataset, CPU)
    executor._record = record
    answers = results(executor, replicas, indices)
    assert_close(answers, expected, ROUNDING)
    assert len(recorded) == 5  # of 2 x 16, 1 x 16, 2 x 64, 1 x 128 and 2 x 256 samples
    for _, gradient in answers:
        gradient.zero_()
    assert not any(gradients.eq(0).all() for gradients, _ in recorded)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_reads_no_values(name, dataset):
    """As a CUDA graph cannot; tensors on the meta device have no values that could be read."""
    meta = torch.device("meta")
    executor = FusedGradientExecutor(build(name, dataset.input_shape, 10, seed=0), dataset, meta)
    size = executor._layout.size
    gradients, losses = executor._compute(
        torch.empty(2, size, device=meta),
        torch.empty(2, 16, dtype=torch.int64, device=meta),
        torch.empty(2, 16, device=meta),
    )
    assert gradients.shape == (2, size)
    assert losses.shape == (2,)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40)), max_size=24))
def test_any_schedule_trains_alike(schedule):
    dataset = random_dataset((1, 3, 3), test=1)
    model = nn.Sequential(nn.Flatten(), nn.Linear(9, 5), nn.Tanh(), nn.Linear(5, 10))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).sin().view_as(parameter))

    def train(executor):
        """Each time it is a worker's turn, it starts a gradient, or reads the one that it has started and steps."""
        replicas, waiting, answers = replicas_of(model, 4), {}, []
        rng = np.random.default_rng(0)
        with closing(executor):
            for worker, size in schedule:
                if worker in waiting:
                    answers.append(executor.result(waiting.pop(worker)))
                    replicas[worker].step(answers[-1][1])
                else:
                    waiting[worker] = executor.submit(replicas[worker], rng.integers(200, size=size))
            return answers + [executor.result(ticket) for ticket in waiting.values()]

    expected = train(GradientExecutor(model, dataset, CPU, threads=2))
    assert_close(train(FusedGradientExecutor(model, dataset, CPU)), expected, 1e-4)


@pytest.mark.parametrize(
    ("name", "replicas", "kind"),
    [("mlp", 31, GradientExecutor), ("mlp", 32, FusedGradientExecutor), ("cipher", 32, GradientExecutor)],
)
def test_a_cpu_fuses_the_gradients_of_many_tiny_models(name, replicas, kind, dataset):
    model = build(name, dataset.input_shape, 10, seed=0)
    with closing(gradient_executor(model, dataset, CPU, replicas=replicas)) as executor:
        assert isinstance(executor, kind)


@pytest.mark.parametrize(
    ("name", "samples", "at_once"), [("mlp", 16, True), ("mlp", 200, False), ("cipher", 16, False)]
)
def test_the_calling_thread_computes_small_gradients_of_tiny_models(name, samples, at_once, dataset):
    model = build(name, dataset.input_shape, 10, seed=0)
    (replica,), (indices,) = replicas_of(model, 1), batches(samples)
    with closing(gradient_executor(model, dataset, CPU, replicas=6, threads=1)) as executor:
        first = executor.submit(replica, indices)
        assert executor.submit(replica, indices).answer.done() is at_once
        assert all(torch.isfinite(executor.result(first)[1]))


def test_frozen_parameters_count_for_the_size_of_a_model(text):
    frozen = adapted(build("gpt", (16,), 20, seed=0, layers=2, heads=4, width=64), 1, 1.0)
    assert sum(parameter.numel() for parameter in frozen.parameters()) < 2**12
    with closing(gradient_executor(frozen, text, CPU, replicas=32)) as executor:
        assert isinstance(executor, GradientExecutor)


def test_on_a_cpu_what_is_computed_together_changes_no_bit_of_a_tiny_language_models_gradients(text):
    model, indices = gpt(), batches(3, 16, 30, 70, 9, 40, 1)
    replicas = replicas_of(model, len(indices))
    together = results(FusedGradientExecutor(model, text, CPU), replicas, indices)
    for replica, batch, (loss, gradient) in zip(replicas, indices, together, strict=True):
        ((alone, of_alone),) = results(FusedGradientExecutor(model, text, CPU), [replica], [batch])
        assert loss == alone
        assert torch.equal(gradient, of_alone)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 70), min_size=1, max_size=80), st.integers(1, 80))
def test_on_a_cpu_what_is_computed_together_changes_no_bit_of_a_tiny_models_gradients(sizes, together):
    dataset = random_dataset((1, 8, 8))
    model = build("mlp", dataset.input_shape, 10, seed=0)
    replicas, indices = replicas_of(model, len(sizes)), batches(*sizes)
    all_together = results(FusedGradientExecutor(model, dataset, CPU), replicas, indices)
    some = [
        answer
        for start in range(0, len(sizes), together)
        for answer in results(
            FusedGradientExecutor(model, dataset, CPU),
            replicas[start : start + together],
            indices[start : start + together],
        )
    ]
    for (loss, gradient), (other_loss, other_gradient) in zip(all_together, some, strict=True):
        assert loss == other_loss
        assert torch.equal(gradient, other_gradient)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("prepare", "tolerance"), [(smooth, 1e-4), (lambda model: model, KINKS)])
def test_a_gpu_computes_what_a_cpu_computes(name, prepare, tolerance, dataset):
    cuda = torch.device("cuda")
    model = prepare(build(name, dataset.input_shape, 10, seed=0))
    on_cpu = replicas_of(model, 5)
    on_gpu = [Replica(replica.layout, replica.parameters.to(cuda), learning_rate=0.1) for replica in on_cpu]
    with (
        closing(GradientExecutor(model, dataset, CPU)) as pool,
        closing(gradient_executor(model, dataset, cuda, replicas=1)) as executor,
    ):
        assert isinstance(executor, FusedGradientExecutor)
        for count in (5, 3, 5, 1, 4):  # shapes come back: their programs are replayed
            indices = batches(9, 16, 12, 300, 40)[:count]
            waiting = [executor.submit(*each) for each in zip(on_gpu, indices, strict=False)]
            expected = [pool.submit(*each) for each in zip(on_cpu, indices, strict=False)]
            assert_close(map(executor.result, waiting), map(pool.result, expected), tolerance)


class Branching(nn.Module):
    """What goes on with values, as vmap cannot."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(192, 10)

    def forward(self, images):
        outputs = self.layer(images.flatten(1))
        return outputs if outputs.sum() > 0 else 2 * outputs


@pytest.mark.parametrize(
    ("model", "kind"), [(Branching(), GradientExecutor), (build("mlp", (3, 8, 8), 10, 0), FusedGradientExecutor)]
)
def test_a_model_that_cannot_be_vectorised_is_not_fused(dataset, model, kind):
    with closing(gradient_executor(model, dataset, CPU, replicas=64, threads=1)) as executor:
        assert isinstance(executor, kind)


@pytest.mark.gpu
@pytest.mark.parametrize("of", ["all", "adapters"])
def test_a_gpu_computes_a_language_model_as_a_cpu_does(of, text):
    cuda, indices = torch.device("cuda"), batches(9, 16, 12, 40)
    model = gpt() if of == "all" else adapted(gpt(), 2, 4.0)
    on_cpu = replicas_of(model, len(indices))
    on_gpu = [Replica(replica.layout, replica.parameters.to(cuda), learning_rate=0.1) for replica in on_cpu]
    expected = results(GradientExecutor(model, text, CPU), on_cpu, indices)
    assert_close(results(FusedGradientExecutor(model, text, cuda), on_gpu, indices), expected, 1e-4)
