from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from dlion_sim.learning import Evaluator, build
from tests.learning.conftest import CPU
from tests.learning.test_gradients import replicas_of


@pytest.fixture(scope="module")
def model():
    return build("cipher", (3, 8, 8), 10, seed=0)


def test_scores_equal_a_plain_loop(model, dataset):
    replicas = replicas_of(model, 2)
    with closing(Evaluator(model, dataset, CPU)) as evaluator:
        scores = evaluator.evaluate(replicas)
    for replica, score in zip(replicas, scores, strict=True):
        for parameter, view in zip(model.parameters(), replica.layout.views(replica.parameters), strict=True):
            parameter.data.copy_(view)
        logits = model((dataset.test_inputs / 255 - 0.5) / 0.25)
        assert score.loss == pytest.approx(cross_entropy(logits, dataset.test_targets).item(), rel=1e-5)
        assert score.metric == (logits.argmax(1) == dataset.test_targets).sum().item() / len(dataset.test_targets)


def test_scores_do_not_depend_on_threads(model, dataset):
    replicas = replicas_of(model, 3)
    scores = []
    for threads in (1, 2, 4):
        with closing(Evaluator(model, dataset, CPU, threads=threads)) as evaluator:
            scores.append(evaluator.evaluate(replicas))
    assert scores[0] == scores[1] == scores[2]


def test_scores_follow_the_parameters(model, dataset):
    (replica,) = replicas_of(model, 1)
    with closing(Evaluator(model, dataset, CPU)) as evaluator:
        before = evaluator.evaluate([replica])
        replica.step(torch.ones(replica.layout.size))
        assert evaluator.evaluate([replica]) != before


def test_the_first_samples_may_do(model, dataset):
    replicas = replicas_of(model, 2)
    few = replace(dataset, test_inputs=dataset.test_inputs[:37], test_targets=dataset.test_targets[:37])
    with closing(Evaluator(model, dataset, CPU)) as evaluator, closing(Evaluator(model, few, CPU)) as expected:
        assert evaluator.evaluate(replicas, 37) == expected.evaluate(replicas)
        assert evaluator.evaluate(replicas, 10**6) == evaluator.evaluate(replicas)


def test_held_out_samples_take_the_test_sets_place(model, dataset):
    replicas, held_out = replicas_of(model, 2), np.array([7, 3, 150, 12])
    images, labels = dataset.train_inputs[held_out], dataset.train_targets[held_out]
    with (
        closing(Evaluator(model, dataset, CPU, validation=held_out)) as evaluator,
        closing(Evaluator(model, replace(dataset, test_inputs=images, test_targets=labels), CPU)) as expected,
    ):
        for samples in (None, 2):
            assert evaluator.evaluate(replicas, samples) == expected.evaluate(replicas, samples)
