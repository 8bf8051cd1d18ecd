"""Runs that hold samples out: the same as with data that were split before, and blind to the test set."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dlion_sim.assembly import Setting
from dlion_sim.learning import load
from dlion_sim.results import WALL_CLOCK_COLUMNS
from dlion_sim.simulation import simulate
from tests.simulation.scenarios import digits

HELD_OUT = "workload.validation=0.2"


def measured(run) -> list[pd.DataFrame]:
    return [run.metrics().drop(columns=list(WALL_CLOCK_COLUMNS)), run.links()]


def use(monkeypatch, dataset) -> None:
    monkeypatch.setattr("dlion_sim.assembly.workload.load", lambda name: dataset)


def split_before(scenario):
    """The digits without what the scenario holds out, and with that as the test set."""
    data, held_out = load("digits"), Setting.of(scenario).validation
    rest = np.setdiff1d(np.arange(len(data.train_targets)), held_out)
    return replace(
        data,
        train_inputs=data.train_inputs[rest],
        train_targets=data.train_targets[rest],
        test_inputs=data.train_inputs[held_out],
        test_targets=data.train_targets[held_out],
    )


@pytest.mark.parametrize("overrides", [("workload.partition=dirichlet",), ("target_accuracy=0.7", "duration=60 s")])
def test_held_out_samples_equal_a_split_before_the_run(tmp_path, monkeypatch, overrides):
    overrides = ("workload.evaluate_every=0.5 s", "workload.evaluation_samples=100", "system=ako", *overrides)
    run = simulate(digits(HELD_OUT, *overrides), tmp_path / "run")
    use(monkeypatch, split_before(digits(HELD_OUT, *overrides)))
    expected = simulate(digits(*overrides), tmp_path / "expected")
    for table, other in zip(measured(run), measured(expected), strict=True):
        pd.testing.assert_frame_equal(table, other, check_exact=True)
    assert run.manifest["partition"] == expected.manifest["partition"]
    for fact in ("stopped_by", "accuracy", "time_to_accuracy"):
        assert run.summary[fact] == expected.summary[fact]
    assert (run.summary["stopped_by"] == "target_accuracy") == ("target_accuracy=0.7" in overrides)
    assert (run.summary["evaluated_on"], expected.summary["evaluated_on"]) == ("validation", "test")
    assert run.evaluated_on == "validation"


def test_the_test_set_is_never_used(tmp_path, monkeypatch):
    run = simulate(digits(HELD_OUT), tmp_path / "run")
    data = load("digits")
    use(monkeypatch, replace(data, test_inputs=data.test_inputs[:0], test_targets=data.test_targets[:0]))
    without = simulate(digits(HELD_OUT), tmp_path / "without")
    for table, other in zip(measured(run), measured(without), strict=True):
        pd.testing.assert_frame_equal(table, other, check_exact=True)
