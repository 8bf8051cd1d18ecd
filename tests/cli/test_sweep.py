"""`dlion sweep`: plan, run, interrupt, kill, resume."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from dlion_sim.results import WALL_CLOCK_COLUMNS, Frames, Run
from tests.at_once import killed
from tests.command import dlion
from tests.made_up import made_up_run
from tests.sweep.scenarios import write_sweep

AXES = {"system": ["baseline", "ako"], "seed": [1, 2]}
NAMES = ["ako-seed1", "ako-seed2", "baseline-seed1", "baseline-seed2"]
WALL = ["run", "wall_seconds", "samples_per_wall_second", "evaluation_share"]


@pytest.fixture
def here(tmp_path, monkeypatch, at_once):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def started(*arguments) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "dlion_sim", "sweep", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition, process) -> None:
    deadline = time.monotonic() + 120
    while not condition() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)


def contents(folder):
    """All that a sweep measured, except for wall clocks."""
    frames = Frames.of([folder])
    metrics = [run.metrics().drop(columns=list(WALL_CLOCK_COLUMNS)) for run in frames.runs]
    return frames.summaries.drop(columns=WALL).to_csv(), [table.to_csv() for table in metrics]


def test_a_sweep_is_planned_and_run_once(capsys, monkeypatch, here):
    write_sweep(here, axes=AXES)
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out", "--dry-run") == 0
    plan = capsys.readouterr().out
    assert all(name in plan for name in NAMES)
    *_, counted, takes = plan.splitlines()
    assert counted == "4 runs: 4 to do"
    assert re.fullmatch(r"the rest takes about \d+ s \(\d+ s to \d+ s\) on this machine, \d+ in parallel", takes)
    assert not (here / "out").exists()

    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out", "--jobs", "1") == 0
    first = capsys.readouterr()
    assert "4 of 4" in first.err
    table = first.out[first.out.index("┏") :]
    assert [line.split()[1] for line in table.splitlines() if line.startswith("│")] == ["baseline", "ako"]
    before = {file: file.stat().st_mtime_ns for file in (here / "out").glob("*/*.*")}

    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out") == 0
    again = capsys.readouterr()
    assert again.out.startswith("4 runs: 4 done\n")
    assert again.out.endswith(table)
    assert {file: file.stat().st_mtime_ns for file in (here / "out").glob("*/*.*")} == before

    assert dlion(monkeypatch, "compare", "out") == 0
    assert capsys.readouterr().out.endswith(table)


def test_a_failed_run_is_reported_and_repeated(capsys, monkeypatch, here):
    write_sweep(here, axes={"workload.batch_size": [16, 1000]})
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out", "--jobs", "1") == 1
    output = capsys.readouterr()
    assert "dlion: out/batch_size1000: failed: workload.batch_size" in output.err
    assert "batch_size16" not in output.err.replace("batch_size16: completed", "")
    assert "1 of 1" not in output.out
    write_sweep(here, axes={"workload.batch_size": [16, 17]}, names="batch_size{batch_size}")
    (here / "out/batch_size1000").rename(here / "out/batch_size17")
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out") == 0
    assert capsys.readouterr().out.startswith("2 runs: 1 done, 1 failed\n")
    assert Run.open(here / "out/batch_size17").manifest["status"] == "completed"


def test_diverged_runs_are_counted_but_are_not_failures(capsys, monkeypatch, here):
    write_sweep(here, axes={"workload.optimizer.learning_rate": [0.1, 100]}, names="rate{learning_rate}")
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out", "--jobs", "1") == 0
    output = capsys.readouterr()
    assert output.err.splitlines()[-1] == "dlion: 1 of 2 runs diverged: rate100"
    assert "! a worker diverged" in output.out


def test_a_changed_scenario_is_refused_before_any_run(capsys, monkeypatch, here):
    write_sweep(here, axes={"seed": [1]})
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out") == 0
    before = contents(here / "out")
    write_sweep(here, "workload.batch_size=8", axes={"seed": [1, 2]}, names="base{seed}")
    (here / "out/base").rename(here / "out/base1")
    capsys.readouterr()
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "out/base1: holds a run of another scenario than base1 is now (workload.batch_size was 16, is 8)" in line
    assert contents(here / "out") == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sweep.yam", "--output", "out"], ["sweep.yam", "no such file, nor a ready sweep", "sweeps/paper_systems"]),
        (["sweep.yaml", "--output", "sweep.yaml"], ["sweep.yaml: cannot be written"]),
        (["sweep.yaml", "--output", "/proc/sweep"], ["/proc/sweep: cannot be written"]),
        (
            ["base.yaml", "--output", "out"],
            ["base.yaml", "is a scenario, not a sweep", "allowed: a sweep; scenarios are for `dlion run`"],
        ),
    ],
)
def test_bad_input_is_one_line(capsys, monkeypatch, here, arguments, words):
    write_sweep(here, axes=AXES)
    assert dlion(monkeypatch, "sweep", *arguments) == 2
    line = capsys.readouterr().err.splitlines()[0]
    assert all(word in line for word in words), line


def test_ctrl_c_interrupts_all_runs(capsys, monkeypatch, here):
    write_sweep(here, "duration=10000 s", axes={"seed": [1, 2, 3]}, names="s{seed}")
    process = started("sweep.yaml", "--output", "out", "--jobs", "2")
    wait_for(lambda: all((here / f"out/s{seed}/manifest.json").exists() for seed in (1, 2)), process)
    monkeypatch.setattr("dlion_sim.sweep.lock._TIMEOUT_SECONDS", 0.0)
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out") == 2
    assert "out: another sweep uses this folder" in capsys.readouterr().err
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert output.endswith("interrupted; the same command continues\n")
    assert [Run.open(here / f"out/s{seed}").manifest["status"] for seed in (1, 2)] == ["interrupted"] * 2
    assert not (here / "out/s3").exists()


def test_a_sweep_killed_twice_resumes_to_the_same_result(capsys, monkeypatch, here):
    write_sweep(here, "duration=4 s", axes=AXES)
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "whole") == 0
    table = capsys.readouterr().out
    process = started("sweep.yaml", "--output", "killed", "--jobs", "2", "--quiet")
    wait_for(lambda: any((here / "killed").glob("*/manifest.json")), process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    killed(1, "sweep", "sweep.yaml", "--output", "killed", "--quiet")
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "killed") == 0
    output = capsys.readouterr().out
    assert output[output.index("┏") :] == table[table.index("┏") :]
    assert contents(here / "killed") == contents(here / "whole")
    assert sorted(folder.name for folder in (here / "killed").iterdir() if folder.is_dir()) == NAMES


def test_reading_summaries_imports_no_torch(monkeypatch, here):
    for seed in (1, 2):
        made_up_run(here / f"out/{seed}", seed=seed)
    write_sweep(here, axes={"seed": [1]})
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "done") == 0
    code = "import sys; from dlion_sim.cli.main import app\n"
    for command in ["compare", "out"], ["sweep", "sweep.yaml", "--output", "done"]:
        code += f"app({command}, standalone_mode=False); print('torch' in sys.modules)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    told = [line for line in done.stdout.splitlines() if line in ("True", "False")]
    assert told == ["False", "False"], done.stderr
