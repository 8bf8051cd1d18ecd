"""What a sweep will take, before it starts."""

import time

import pytest

from dlion_sim.results import RunWriter
from dlion_sim.simulation import simulate
from dlion_sim.sweep import Job, estimate, load_sweep, run_seconds, survey
from tests.simulation.scenarios import digits
from tests.sweep.scenarios import write_sweep

AXES = {"system": ["ako", "baseline"], "seed": [1, 2, 3]}


def test_a_run_takes_about_as_long_as_its_beginning_tells(tmp_path):
    scenario = digits("duration=100 s", "workload.evaluate_every=10 s")
    simulate(scenario.model_copy(update={"duration": 1.0}), tmp_path / "warm")
    told = run_seconds(scenario, watch=0.3)
    began = time.monotonic()
    simulate(scenario, tmp_path / "whole")
    took = time.monotonic() - began
    assert took / 4 < told < took * 4  # on a machine that others use too


def test_runs_that_are_done_tell_it_for_their_kind(tmp_path):
    points = load_sweep(write_sweep(tmp_path, axes=AXES))
    for point, seconds in zip((points[0], points[3]), (100.0, 40.0), strict=True):
        job = Job.of(point, tmp_path / "out", "cpu")
        writer = RunWriter.create(tmp_path / "out" / point.name, scenario_yaml=job.scenario, manifest=job.manifest)
        writer.finish({"status": "completed", "wall_seconds": seconds})
    found = survey(points, tmp_path / "out")
    assert estimate(points, found, jobs=1).seconds == pytest.approx(2 * 100 + 2 * 40)
    two = estimate(points, found, jobs=2)
    assert two.seconds == pytest.approx(140)
    assert two.low < two.seconds < two.high
    assert estimate(points, found, jobs=9).seconds == pytest.approx(100)


def test_what_is_done_takes_no_time(tmp_path):
    (point,) = load_sweep(write_sweep(tmp_path, axes={"seed": [1]}))
    job = Job.of(point, tmp_path / "out", "cpu")
    writer = RunWriter.create(tmp_path / "out" / point.name, scenario_yaml=job.scenario, manifest=job.manifest)
    writer.finish({"status": "completed"})
    assert estimate([point], survey([point], tmp_path / "out")).high == 0
