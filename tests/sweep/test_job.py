"""Jobs that are resumed or repeated."""

from pathlib import Path

import pytest

from dlion_sim.results import WALL_CLOCK_COLUMNS, Run, mark
from dlion_sim.results.run_folder import CHECKPOINT
from dlion_sim.sweep import Job, load_sweep
from dlion_sim.sweep.job import Ended, record_failure, work
from tests.sweep.scenarios import write_sweep


def job_of(folder, *overrides):
    [point] = load_sweep(write_sweep(folder, *overrides))
    return Job.of(point, folder / "out", "cpu")


def begun(job, events=60):
    """The run that is left when the job is interrupted after so many events."""
    left = iter(range(events))
    assert work(job, lambda: next(left, None) is None, lambda _: None).status == "interrupted"
    return Run.open(Path(job.folder))


def done(job):
    ended = work(job, lambda: False, lambda _: None)
    assert ended.status == "completed", ended.problem
    return Run.open(Path(job.folder))


@pytest.fixture
def job(tmp_path):
    return job_of(tmp_path)


def test_an_interrupted_job_resumes_to_the_same_result(tmp_path, job):
    ended_at = begun(job).summary["virtual_seconds"]
    run = done(job)
    assert run.manifest["resumed_at"] == [ended_at]
    whole = done(job_of(tmp_path / "other"))
    tables = [each.metrics().drop(columns=list(WALL_CLOCK_COLUMNS)) for each in (run, whole)]
    assert tables[0].equals(tables[1])


def test_without_a_usable_checkpoint_it_starts_again(job):
    (begun(job).folder / CHECKPOINT).write_bytes(b"lost")
    assert "resumed_at" not in done(job).manifest


def test_a_failed_job_starts_again(job):
    mark(begun(job).folder, "failed")
    assert "resumed_at" not in done(job).manifest


def test_a_changed_scenario_starts_again(tmp_path, job):
    begun(job)
    run = done(job_of(tmp_path, "seed=7"))
    assert "resumed_at" not in run.manifest
    assert run.manifest["seed"] == 7


def test_a_cost_that_is_stated_no_more_starts_again(tmp_path, job):
    begun(job)
    run = done(job_of(tmp_path, "workload.compute_time.beta=null"))
    assert "resumed_at" not in run.manifest
    assert run.manifest["sweep"]["left_open"] == ["workload.compute_time.beta"]


def test_a_failure_before_the_start_records_the_evaluation_set(tmp_path):
    job = job_of(tmp_path, "workload.validation=0.1")
    record_failure(job, Ended(job.name, "failed", "no more memory"))
    assert Run.open(Path(job.folder)).evaluated_on == "validation"
