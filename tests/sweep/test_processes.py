"""Jobs in processes: parallel, and independent of each other's failures."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from dlion_sim.results import Run
from dlion_sim.sweep import Ended, Job, LocalProcesses, Progressed, Started, load_sweep, run_all
from tests.sweep.scenarios import write_sweep


@pytest.fixture
def processes(tmp_path):
    lock = os.open(tmp_path, os.O_RDONLY)
    with LocalProcesses(2, 1, lock=lock, log=tmp_path / "workers.log") as executor:
        yield executor
    os.close(lock)


def jobs_of(folder, *overrides, **keys):
    return [Job.of(point, folder / "out", "cpu") for point in load_sweep(write_sweep(folder, *overrides, **keys))]


def test_a_failed_run_is_recorded_and_the_others_complete(tmp_path, processes):
    # 1000 samples a batch are more than a worker has.
    axes = {"workload.batch_size": [16, 1000], "seed": [1, 2]}
    events = list(run_all(jobs_of(tmp_path, axes=axes), processes, lambda: False))
    ended = {event.name: event for event in events if isinstance(event, Ended)}
    assert {name: event.status for name, event in ended.items()} == {
        "batch_size16-seed1": "completed",
        "batch_size16-seed2": "completed",
        "batch_size1000-seed1": "failed",
        "batch_size1000-seed2": "failed",
    }
    assert "allowed: 1 to" in ended["batch_size1000-seed1"].problem
    assert sum(isinstance(event, Started) for event in events) == 4
    assert max(event.fraction for event in events if isinstance(event, Progressed)) == 1
    run = Run.open(tmp_path / "out/batch_size16-seed2")
    job = next(job for job in jobs_of(tmp_path, axes=axes) if job.name == run.folder.name)
    assert (run.folder / "scenario.yaml").read_text() == job.scenario
    assert run.point == {"base": "base", "workload.batch_size": "16", "seed": "2"}
    assert run.summary["accuracy"]["mean"] > 0.1
    assert "allowed: 1 to" in Run.open(tmp_path / "out/batch_size1000-seed2").manifest["problem"]


def test_a_process_that_dies_fails_its_run_only(tmp_path, processes):
    ended = {}
    killed = None
    # The first run would take minutes.
    jobs = jobs_of(tmp_path, "duration=10000 s", axes={"seed": [1]}) + jobs_of(tmp_path, axes={"seed": [2, 3]})
    for event in run_all(jobs, processes, lambda: False):
        if isinstance(event, Ended):
            ended[event.name] = event
        if isinstance(event, Progressed) and event.name == "base" and "seed2" in ended and not killed:
            killed = next(worker.process for worker in processes._workers if worker.job and worker.job.name == "base")
            killed.send_signal(signal.SIGKILL)
    assert {name: event.status for name, event in ended.items()} == {
        "base": "failed",
        "seed2": "completed",
        "seed3": "completed",
    }
    assert "killed by signal 9" in ended["base"].problem
    assert json.loads((tmp_path / "out/base/manifest.json").read_text())["status"] == "failed"


def test_an_interrupt_ends_running_jobs_and_starts_no_more(tmp_path, processes):
    asked = []
    ended = []
    for event in run_all(
        jobs_of(tmp_path, "duration=10000 s", axes={"seed": [1, 2, 3]}), processes, lambda: bool(asked)
    ):
        if isinstance(event, Progressed) and event.fraction > 0:
            asked.append(event)
        if isinstance(event, Ended):
            ended.append((event.name, event.status))
    assert sorted(ended) == [("seed1", "interrupted"), ("seed2", "interrupted")]
    assert not (tmp_path / "out/seed3").exists()
    statuses = [
        Run.open(tmp_path / "out" / name).manifest["status"] for name, _ in ended if (tmp_path / "out" / name).exists()
    ]
    assert set(statuses) == {"interrupted"}


def test_processes_have_limited_threads(tmp_path):
    with (tmp_path / "lock").open("w") as lock, LocalProcesses(2, 3, lock=lock.fileno(), log=tmp_path / "log") as few:
        assert few.free == 2
        for worker in few._workers:
            environment = Path(f"/proc/{worker.process.pid}/environ")
            deadline = time.monotonic() + 60
            while not environment.read_bytes() and time.monotonic() < deadline:
                time.sleep(0.01)  # It reads as empty while the process begins.
            assert b"OMP_NUM_THREADS=3" in environment.read_bytes().split(b"\0")


@pytest.fixture
def stray(tmp_path, monkeypatch):
    """The current folder has a file with the name of a dependency."""
    (tmp_path / "msgspec.py").write_text("open('run', 'w').close()")
    monkeypatch.chdir(tmp_path)


def test_modules_in_the_current_folder_are_not_imported(tmp_path, stray, processes):
    (ended,) = [event for event in run_all(jobs_of(tmp_path), processes, lambda: False) if isinstance(event, Ended)]
    assert ended.status == "completed"
    assert not (tmp_path / "run").exists()
