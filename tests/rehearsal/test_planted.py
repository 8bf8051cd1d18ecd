"""Faults that would only show on a GPU are found without one."""

from contextlib import closing

import pytest
import torch

from dlion_sim.learning import (
    Evaluator,
    FusedGradientExecutor,
    GradientExecutor,
    accelerator,
    build,
    evaluation,
    fused,
    gradients,
)
from dlion_sim.learning.datasets import dataset as datasets
from tests.learning.conftest import random_dataset
from tests.learning.test_fused import batches, results
from tests.learning.test_gradients import replicas_of
from tests.rehearsal.device import RefusedError
from tests.rehearsal.planted import plant
from tests.rehearsal.test_gradients import moved


@pytest.fixture
def compute(rehearsal):
    """Computes some gradients by an executor."""
    dataset = random_dataset()
    model = build("mlp", dataset.input_shape, 10, seed=0)

    def compute(kind, *sizes):
        return results(
            kind(model, dataset, rehearsal), moved(replicas_of(model, len(sizes)), rehearsal), batches(*sizes)
        )

    return compute


@pytest.fixture
def evaluate(rehearsal):
    """Scores some replicas."""
    dataset = random_dataset()
    model = build("mlp", dataset.input_shape, 10, seed=0)
    with closing(Evaluator(model, dataset, rehearsal)) as evaluator:
        yield lambda: evaluator.evaluate(moved(replicas_of(model, 2), rehearsal))


def test_what_is_left_as_it_is_is_computed(compute, evaluate):
    assert all(
        gradient.isfinite().all()
        for kind in (FusedGradientExecutor, GradientExecutor)
        for _, gradient in compute(kind, 9, 40)
    )
    assert len(evaluate()) == 2


@pytest.mark.parametrize("kind", [FusedGradientExecutor, GradientExecutor])
def test_samples_that_stay_on_the_cpu(kind, compute, monkeypatch):
    plant(monkeypatch, datasets, "Dataset.to", "self.train_inputs.to(device)", "self.train_inputs")
    with pytest.raises(
        RuntimeError, match="indices should be either on cpu or on the same device as the indexed tensor"
    ):
        compute(kind, 9)


def test_an_index_that_stays_on_the_cpu(compute, monkeypatch):
    plant(monkeypatch, gradients, "GradientExecutor._gradient", ".to(self._dataset.train_targets.device)", "")
    with pytest.raises(
        RefusedError, match=r"on the same device, but aten\.index.* got one on rehearsal:0 and \[9\] int64 on cpu"
    ):
        compute(GradientExecutor, 9)


def test_a_buffer_that_stays_on_the_cpu(compute, monkeypatch):
    plant(
        monkeypatch,
        fused,
        "FusedGradientExecutor._new_program",
        "torch.zeros(rows, samples, device=self._device)",
        "torch.zeros(rows, samples)",
    )
    with pytest.raises(RuntimeError, match="found at least two devices, rehearsal:0 and cpu"):
        compute(FusedGradientExecutor, 9)


def test_after_a_failure_another_executor_computes(compute, monkeypatch):
    """What the failed one was first to make, such as the statistics of images, the other one reads."""
    datasets._statistics.cache_clear()
    with monkeypatch.context() as planted:
        plant(planted, fused, "FusedGradientExecutor._compute", "return gradients, losses", "raise KeyError")
        with pytest.raises(KeyError):
            compute(FusedGradientExecutor, 9)
    assert all(gradient.isfinite().all() for _, gradient in compute(FusedGradientExecutor, 9))


def test_numpy_of_what_is_on_the_device(evaluate, monkeypatch):
    plant(monkeypatch, evaluation, "_digest", ".cpu()", "")
    with pytest.raises(TypeError, match=r"can't convert rehearsal:0 device type tensor to numpy\. Use Tensor\.cpu\(\)"):
        evaluate()


def test_a_value_that_is_read_while_a_graph_is_recorded(compute, monkeypatch):
    plant(
        monkeypatch,
        fused,
        "FusedGradientExecutor._compute",
        "return gradients, losses",
        "losses.sum().item()\n    return gradients, losses",
    )
    with pytest.raises(RefusedError, match="a value while a graph is being recorded: the host would wait for it"):
        compute(FusedGradientExecutor, 9)


def test_values_that_are_sent_while_a_graph_is_recorded(compute, monkeypatch):
    plant(
        monkeypatch,
        fused,
        "FusedGradientExecutor._compute",
        "return gradients, losses",
        "return gradients, losses + torch.tensor([1.0]).to(self._device)",
    )
    with pytest.raises(
        RefusedError, match=r"a copy while a graph is being recorded: the host would wait for it \(to device\)"
    ):
        compute(FusedGradientExecutor, 9)


def test_a_stream_that_does_not_wait(compute, monkeypatch):
    plant(monkeypatch, accelerator, "GraphRecorder.__call__", "self._stream.wait_stream(current)", "")
    with pytest.raises(RefusedError, match="reads memory that another stream is at: it has to wait for that stream"):
        compute(FusedGradientExecutor, 9)


def test_an_answer_that_is_kept_while_another_graph_runs(compute, monkeypatch):
    """Both graphs write the same memory."""
    plant(monkeypatch, fused, "FusedGradientExecutor._compute_waiting", "copied(gradient)", "gradient")
    (_, first), (_, second) = compute(FusedGradientExecutor, 9, 40)
    assert first.isnan().all()
    assert second.isfinite().all()


def test_memory_that_a_graph_was_recorded_with_and_that_is_given_back(rehearsal):
    recorder = accelerator.GraphRecorder(rehearsal)

    def recorded(numbers):
        return recorder(lambda: (numbers + 1, numbers * 2))

    replay = recorded(torch.ones(3, device=rehearsal))
    with pytest.raises(RefusedError, match=r"the memory that aten.\S+ was recorded with has been given back"):
        replay()
