"""What a sweep will take, before it starts."""

from itertools import count
from types import SimpleNamespace

import pytest

from dlion_sim.results import RunWriter
from dlion_sim.sweep import Job, estimate, load_sweep, run_seconds, survey
from dlion_sim.sweep.estimating import Observation, remaining_seconds
from tests.simulation.scenarios import digits
from tests.sweep.scenarios import write_sweep

AXES = {"system": ["ako", "baseline"], "seed": [1, 2, 3]}


def test_the_rest_of_a_run_continues_at_the_rate_that_was_observed():
    """A tenth in 10 s, of which two evaluations of 2 s took 4 s; in the other eight tenths are 16 more of them."""
    since, until = Observation(wall=5.0, done=0.1, virtual=10.0), Observation(wall=15.0, done=0.2, virtual=20.0)
    assert remaining_seconds(since, until, evaluation=0.0, every=5.0) == pytest.approx(80)
    assert remaining_seconds(since, until, evaluation=2.0, every=5.0) == pytest.approx(8 * 6 + 16 * 2)


def test_evaluations_that_were_not_observed_count():
    since, until = Observation(wall=5.0, done=0.1, virtual=10.0), Observation(wall=15.0, done=0.2, virtual=20.0)
    assert remaining_seconds(since, until, evaluation=3.0, every=40.0) == pytest.approx(8 * 10 + 2 * 3)


def test_only_the_beginning_of_a_run_is_measured(monkeypatch):
    """On a clock by which a second passes at each look, a run that would take hours ends within a few looks."""
    clock = count()
    monkeypatch.setattr("dlion_sim.sweep.estimating.time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    assert run_seconds(digits("duration=10000000 s"), watch=1) > 10_000


def test_a_run_that_is_over_sooner_takes_what_it_took(monkeypatch):
    clock = count()
    monkeypatch.setattr("dlion_sim.sweep.estimating.time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    assert run_seconds(digits("duration=1 s"), watch=1000) < 1000


def test_a_run_that_a_loss_ends_at_once_is_estimated_by_itself():
    down = "availability={workers: {east/0: {down: [[0.3 s, null]]}}}"
    assert run_seconds(digits("duration=10000000 s", down, system="ring_allreduce"), watch=1000) < 1000


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
