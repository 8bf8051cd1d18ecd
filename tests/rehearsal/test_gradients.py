"""Gradients on a GPU: fused and one by one, as on a CPU."""

from contextlib import closing

import pytest

from dlion_sim.learning import Evaluator, FusedGradientExecutor, GradientExecutor, Replica, build, gradient_executor
from dlion_sim.learning.lora import adapted
from tests.learning.conftest import CPU, random_dataset
from tests.learning.test_fused import ROUNDING, Branching, assert_close, batches, gpt, results, smooth, text  # noqa: F401
from tests.learning.test_gradients import NAMES, replicas_of
from tests.rehearsal.device import MACHINE


@pytest.fixture
def dataset():
    return random_dataset()


def moved(replicas, device):
    return [Replica(each.layout, each.parameters.to(device), learning_rate=0.1) for each in replicas]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "resnet18"])
def test_fused_gradients_are_those_of_a_cpu(name, dataset, rehearsal):
    model = smooth(build(name, dataset.input_shape, 10, seed=0))
    on_cpu = replicas_of(model, 3)
    here = moved(on_cpu, rehearsal)
    with (
        closing(GradientExecutor(model, dataset, CPU, threads=1)) as pool,
        closing(gradient_executor(model, dataset, rehearsal, replicas=1)) as executor,
    ):
        assert isinstance(executor, FusedGradientExecutor)
        for count in (3, 1, 3):  # shapes come back: their graphs are replayed
            indices = batches(9, 16, 40)[:count]
            waiting = [executor.submit(*each) for each in zip(here, indices, strict=False)]
            expected = [pool.submit(*each) for each in zip(on_cpu, indices, strict=False)]
            assert_close(map(executor.result, waiting), map(pool.result, expected), ROUNDING)


@pytest.mark.parametrize("of", ["all", "adapters"])
def test_fused_gradients_of_a_language_model_are_those_of_a_cpu(of, text, rehearsal):  # noqa: F811
    model, indices = gpt() if of == "all" else adapted(gpt(), 2, 4.0), batches(9, 16, 12, 40)
    on_cpu = replicas_of(model, len(indices))
    expected = results(GradientExecutor(model, text, CPU), on_cpu, indices)
    assert_close(
        results(FusedGradientExecutor(model, text, rehearsal), moved(on_cpu, rehearsal), indices), expected, ROUNDING
    )


def test_what_cannot_be_vectorised_is_computed_one_by_one(dataset, rehearsal):
    model, indices = Branching(), batches(9, 300)
    on_cpu = replicas_of(model, 2)
    executor = gradient_executor(model, dataset, rehearsal, replicas=2)
    assert isinstance(executor, GradientExecutor)
    expected = results(GradientExecutor(model, dataset, CPU), on_cpu, indices)
    assert_close(results(executor, moved(on_cpu, rehearsal), indices), expected, ROUNDING)


def test_scores_are_those_of_a_cpu(dataset, rehearsal):
    model = build("cipher", dataset.input_shape, 10, seed=0)
    on_cpu = replicas_of(model, 3)
    with (
        closing(Evaluator(model, dataset, CPU)) as evaluator,
        closing(Evaluator(model, dataset, rehearsal)) as other,
    ):
        expected = evaluator.evaluate(on_cpu)
        for score, its in zip(other.evaluate(moved(on_cpu, rehearsal)), expected, strict=True):
            assert score.loss == pytest.approx(its.loss, rel=1e-5)


def test_recorded_gradients_read_nothing_back(dataset, rehearsal):
    """For all that waits: parameters are there, samples and their weights are sent, and losses are read."""
    model = build("cipher", dataset.input_shape, 10, seed=0)
    here = moved(replicas_of(model, 5), rehearsal)
    with closing(FusedGradientExecutor(model, dataset, rehearsal)) as executor:
        for _ in range(2):
            with MACHINE.counted() as crossings:
                waiting = [
                    executor.submit(replica, samples)
                    for replica, samples in zip(here, batches(9, 9, 9, 9, 9), strict=True)
                ]
                for ticket in waiting:
                    executor.result(ticket)
        assert [each.kind for each in crossings] == ["to device", "to device", "to host"]
