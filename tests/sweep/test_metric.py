"""What a run comes to."""

import json
import math

import pytest

from dlion_sim.results import Run
from dlion_sim.sweep import metric
from dlion_sim.sweep.metric import TimeToAccuracy
from tests.made_up import made_up_run


def test_a_run_comes_to_its_accuracy_its_loss_or_its_time(tmp_path):
    run = made_up_run(tmp_path, (0.1, 0.5, 0.8), every=10)
    assert metric.measure("accuracy", run) == pytest.approx(0.8)
    assert metric.measure("loss", run) == 1
    assert metric.measure(TimeToAccuracy(time_to_accuracy=0.45), run) == 10
    assert metric.measure(TimeToAccuracy(time_to_accuracy=0.9), run) == math.inf


def test_what_diverged_comes_to_nothing(tmp_path):
    run = made_up_run(tmp_path)
    (tmp_path / "summary.json").write_text(json.dumps({**run.summary, "diverged": [1]}))
    for goal in ("accuracy", "loss", TimeToAccuracy(time_to_accuracy=0.5)):
        with pytest.raises(ValueError, match=r"diverged: workers \[1\]"):
            metric.measure(goal, Run.open(tmp_path))


def test_what_was_never_evaluated_comes_to_nothing(tmp_path):
    with pytest.raises(ValueError, match="never evaluated"):
        metric.measure("loss", made_up_run(tmp_path, ()))


def test_its_title_says_that_it_is_measured_on_validation_samples():
    goals = ("accuracy", "loss", TimeToAccuracy(time_to_accuracy=0.5))
    assert all("validation" in metric.title(goal) for goal in goals)


def test_the_direction_follows_from_the_metric():
    assert metric.direction("accuracy") == "maximize"
    assert metric.direction("loss") == metric.direction(TimeToAccuracy(time_to_accuracy=0.5)) == "minimize"


def test_a_time_before_which_nothing_was_evaluated_is_written_as_a_bound(tmp_path):
    run = made_up_run(tmp_path, (0.1, 0.5, 0.8), every=10)
    early, late = TimeToAccuracy(time_to_accuracy=0.45), TimeToAccuracy(time_to_accuracy=0.7)
    assert metric.written(early, 10.0, [run]) == "<= 10.00"
    assert metric.written(late, 20.0, [run]) == "20.00"
    assert metric.written(TimeToAccuracy(time_to_accuracy=0.05), 0.0, [run]) == "before training"
    assert metric.written(TimeToAccuracy(time_to_accuracy=0.9), math.inf, [run]) == "never"
    assert metric.written("accuracy", 0.8, [run]) == "80.00"
