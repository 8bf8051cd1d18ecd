"""Values of runs that searches optimize."""

import json
import math

import pytest

from dlion_sim.results import Run
from dlion_sim.sweep import metric
from dlion_sim.sweep.metric import TimeToAccuracy
from tests.made_up import made_up_run


def test_a_value_is_an_accuracy_a_loss_or_a_time(tmp_path):
    run = made_up_run(tmp_path, (0.1, 0.5, 0.8), every=10)
    assert metric.measure("accuracy", run) == pytest.approx(0.8)
    assert metric.measure("loss", run) == 1
    assert metric.measure(TimeToAccuracy(time_to_accuracy=0.45), run) == 10
    assert metric.measure(TimeToAccuracy(time_to_accuracy=0.9), run) == math.inf


def test_a_diverged_run_has_no_value(tmp_path):
    run = made_up_run(tmp_path)
    (tmp_path / "summary.json").write_text(json.dumps({**run.summary, "diverged": [1]}))
    for goal in ("accuracy", "loss", TimeToAccuracy(time_to_accuracy=0.5)):
        with pytest.raises(ValueError, match=r"diverged: workers \[1\]"):
            metric.measure(goal, Run.open(tmp_path))


def test_a_run_without_evaluations_has_no_value(tmp_path):
    with pytest.raises(ValueError, match="never evaluated"):
        metric.measure("loss", made_up_run(tmp_path, ()))


def test_values_are_written_with_bounds(tmp_path):
    run = made_up_run(tmp_path, (0.1, 0.5, 0.8), every=10)
    early, late = TimeToAccuracy(time_to_accuracy=0.45), TimeToAccuracy(time_to_accuracy=0.7)
    assert metric.written(early, 10.0, [run]) == "<= 10.00"
    assert metric.written(late, 20.0, [run]) == "20.00"
    assert metric.written(TimeToAccuracy(time_to_accuracy=0.05), 0.0, [run]) == "before training"
    assert metric.written(TimeToAccuracy(time_to_accuracy=0.9), math.inf, [run]) == "never"
    assert metric.written("accuracy", 0.8, [run]) == "80.00"
