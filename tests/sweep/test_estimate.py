"""What a sweep will take, before it starts."""

from itertools import count
from types import SimpleNamespace

import pytest

from dlion_sim.results import RunWriter
from dlion_sim.sweep import Job, estimate, load_sweep, run_seconds, survey
from tests.simulation.scenarios import digits
from tests.sweep.scenarios import write_sweep

AXES = {"system": ["ako", "baseline"], "seed": [1, 2, 3]}


def test_a_run_takes_about_as_long_as_its_beginning_tells(monkeypatch):
    """On a machine on which each look at the clock takes 1 ms, and so half of a run half as long as all of it."""
    clock = count()
    monkeypatch.setattr("dlion_sim.sweep.estimating.time", SimpleNamespace(monotonic=lambda: next(clock) / 1000))
    scenario = digits("duration=100 s", "workload.evaluate_every=100 s")
    told = run_seconds(scenario, watch=0.1)
    assert told == pytest.approx(run_seconds(scenario, watch=0.2), rel=0.2)
    half = run_seconds(digits("duration=50 s", "workload.evaluate_every=50 s"), watch=0.1)
    assert told == pytest.approx(2 * half, rel=0.2)


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
